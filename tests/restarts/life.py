"""One life of a job in a process of its own, which a test kills: `python -m tests.restarts.life FOLDER OPERATOR`.

It prints "running" when it has begun and, if it lives long enough to take all batches, the state of every key as JSON.
"""

import json
import sys
import time

import pyarrow as pa

from elastic.local import LocalNetwork
from elastic.local.run import TableSource, local_run
from storage import Secret
from tests.restarts import versions

SECRET = Secret.of("a secret of the lives of a job")
SCHEMA = pa.schema([("customer", pa.string()), ("amount", pa.int64())])
CUSTOMERS = [f"customer-{number}" for number in range(40)]
BATCHES = 40
_PAUSE_SECONDS = 0.03  # between two batches, so that a kill meets many different moments


def batch(number: int) -> pa.Table:
    """Rows of a few customers, others in every batch."""
    chosen = [CUSTOMERS[(7 * number + step) % len(CUSTOMERS)] for step in range(6)]
    return pa.table({"customer": chosen, "amount": [number + step for step in range(6)]}, schema=SCHEMA)


def totals() -> dict[str, int]:
    """What every customer has spent after all batches."""
    found = dict.fromkeys(CUSTOMERS, 0)
    for number in range(BATCHES):
        for row in batch(number).to_pylist():
            found[row["customer"]] += row["amount"]
    return found


def run(folder: str, operator: str) -> None:
    """Continue with the job in this folder until all batches are taken and saved."""
    network = LocalNetwork()
    source = TableSource(network)
    job = local_run(
        source,
        schema=SCHEMA,
        key="customer",
        operator=getattr(versions, operator)(),
        name="spending",
        store=folder,
        secret=SECRET,
        network=network,
        settings={"heartbeat_seconds": 0.1, "snapshot_seconds": 0.15},
    )
    print("running", flush=True)
    done = job._ingest.next_source_batch
    source.ingested = done
    source.batches = [batch(number) for number in range(done)]
    for number in range(done, BATCHES):
        source.append(batch(number))
        time.sleep(_PAUSE_SECONDS)
    job.process_all_available()
    state = {customer: job.state(customer) for customer in CUSTOMERS}
    job.stop()
    print(json.dumps(state), flush=True)


if __name__ == "__main__":
    run(*sys.argv[1:])
