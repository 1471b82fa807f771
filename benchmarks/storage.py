"""Speed of encoding, storing, reading and decoding state: `make bench-storage`.

Every figure is MB/s of the packed object, the median of several rounds, next to the raw client's speed with the same
bytes in the same round: `put` then `get` for S3, write + fsync + rename then read for files.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import pyarrow as pa

import storage
from benchmarks.report import RESULTS, table
from scripts import s3_server
from storage.codec import Secret, pack, unpack
from storage.state import Manifests, StateManager, UnitId

MEGABYTE = 1e6
SIZES = {"10 kB": 10_000, "1 MB": 1_000_000, "10 MB": 10_000_000, "100 MB": 100_000_000}
SECRET = Secret.random()
KEY = "bench/object.state"


def random_words(rows: int, rng: np.random.Generator) -> list[str]:
    return [f"{number:016x}" for number in rng.integers(0, 2**63, rows).tolist()]


def random_dictionary(size: int, rng: np.random.Generator) -> dict[str, int]:
    rows = max(size // 28, 1)  # 16 characters, 4 bytes of offset, 8 of the count
    return dict(zip(random_words(rows, rng), rng.integers(0, 1_000_000, rows).tolist(), strict=True))


def random_table(size: int, rng: np.random.Generator) -> pa.Table:
    rows = max(size // 36, 1)
    counts = rng.integers(0, 1_000_000, rows)
    return pa.table({"word": random_words(rows, rng), "count": counts, "score": rng.random(rows)})


def random_array(size: int, rng: np.random.Generator) -> "np.ndarray[Any, np.dtype[np.float64]]":
    return rng.random(size // 8)


KINDS: dict[str, Callable[[int, np.random.Generator], Any]] = {
    "dict of str -> int": random_dictionary,
    "Arrow table": random_table,
    "NumPy array": random_array,
}


class Medium(NamedTuple):
    """A store, and raw access to the same medium: write bytes durably, read them back."""

    name: str
    store: storage.Store
    raw_put: Callable[[bytes], object]
    raw_get: Callable[[], object]


@contextmanager
def open_files() -> Iterator[Medium]:
    with tempfile.TemporaryDirectory(prefix="bench-storage-") as folder:
        raw, unfinished = Path(folder, "raw"), Path(folder, "raw.unfinished")

        def write(data: bytes) -> None:
            with unfinished.open("wb", buffering=0) as file:
                file.write(data)
                os.fsync(file.fileno())
            unfinished.rename(raw)
            descriptor = os.open(folder, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)

        store = storage.open(f"file://{folder}/store")
        yield Medium("file", store, write, raw.read_bytes)
        store.close()


@contextmanager
def open_s3() -> Iterator[Medium]:
    with tempfile.TemporaryDirectory(prefix="bench-storage-") as folder:
        real = s3_server.find_minio() is not None
        start = s3_server.minio_server(Path(folder)) if real else s3_server.moto_server()
        with start as server:
            server.create_bucket("bench")
            client = server.client()
            store = storage.open(server.url("bench", "ours"), **server.settings())
            yield Medium(
                "MinIO" if real else "moto",
                store,
                lambda data: client.put_object(Bucket="bench", Key="raw/object", Body=data),
                lambda: client.get_object(Bucket="bench", Key="raw/object")["Body"].read(),
            )
            store.close()


def measure(action: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = action()
    return time.perf_counter() - began, result


class Round(NamedTuple):
    """Seconds of one round: the steps of this package, then those of the raw client with the same bytes."""

    encode: float
    put: float
    get: float
    decode: float
    raw_put: float
    raw_get: float

    @property
    def move(self) -> float:
        return self.encode + self.put + self.get + self.decode

    @property
    def share_of_raw(self) -> float:
        return (self.raw_put + self.raw_get) / self.move


def run_round(medium: Medium, state: Any) -> tuple[int, Round]:
    encode, packed = measure(lambda: pack({"state": state}, key=KEY, secret=SECRET))
    put, _ = measure(lambda: medium.store.put(KEY, packed))
    get, stored = measure(lambda: medium.store.get(KEY))
    decode, _ = measure(lambda: unpack(stored.data, key=KEY, secret=SECRET).parts["state"])
    data = bytes(packed)
    raw_put, _ = measure(lambda: medium.raw_put(data))
    raw_get, _ = measure(medium.raw_get)
    return len(data), Round(encode, put, get, decode, raw_put, raw_get)


def measure_sizes(medium: Medium) -> tuple[list[list[str]], dict[tuple[str, str], float]]:
    rows, shares = [], {}
    for kind, create in KINDS.items():
        for label, size in SIZES.items():
            state = create(size, np.random.default_rng(1))
            rounds = [run_round(medium, state) for _ in range(4 if size > 10_000_000 else 9)][
                1:
            ]  # the first is a warm-up
            stored = rounds[0][0]
            medians = Round(*np.median([timing for _, timing in rounds], axis=0))
            all_shares = [timing.share_of_raw for _, timing in rounds]
            shares[kind, label] = float(np.median(all_shares))
            rates = [stored / MEGABYTE / spent for spent in (*medians, medians.move)]
            spread = f"{min(all_shares):.0%}..{max(all_shares):.0%}"
            rows.append(
                [f"{kind}, {label}", f"{stored / MEGABYTE:.3g}"]
                + [f"{rate:,.0f}" for rate in rates]
                + [f"{shares[kind, label]:.0%}", spread]
            )
            print(".", end="", flush=True, file=sys.stderr)
    return rows, shares


class DelayedStore:
    """A store with 20 ms of network latency added to every put and get."""

    def __init__(self, store: storage.Store) -> None:
        self._store = store

    def __getattr__(self, operation: str) -> Any:
        if operation in ("put", "get"):
            time.sleep(0.02)
        return getattr(self._store, operation)


def measure_parallelism(medium: Medium, count: int = 64, size: int = 1_000_000) -> list[str]:
    rng = np.random.default_rng(2)
    states = {UnitId.from_number(task): random_table(size, rng) for task in range(count)}
    sequential, parallel = [], []
    manifests = Manifests(medium.store, SECRET, "bench")
    manifests.recover()
    with (
        StateManager(medium.store, SECRET, "bench") as manager,
        manifests.leases.open("bench") as lease,
        ThreadPoolExecutor(16) as pool,
    ):

        def one_by_one() -> None:
            for unit, state in states.items():
                manager.load(manager.save(unit, state, batch=1, lease=lease))

        def all_at_once() -> None:
            save = partial(manager.save, batch=1, lease=lease)
            manager.load_many(list(pool.map(save, states.keys(), states.values())))

        for _ in range(4):
            sequential.append(measure(one_by_one)[0])
            parallel.append(measure(all_at_once)[0])
    gains = [slow / fast for slow, fast in zip(sequential[1:], parallel[1:], strict=True)]
    total = count * size / MEGABYTE
    return [
        medium.name,
        f"{total / float(np.median(sequential[1:])):.0f}",
        f"{total / float(np.median(parallel[1:])):.0f}",
        f"{float(np.median(gains)):.2f}",
        f"{min(gains):.2f}..{max(gains):.2f}",
    ]


def draw_chart(shares: dict[str, dict[tuple[str, str], float]]) -> Path:
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, len(shares), figsize=(11, 4), sharey=True, layout="constrained")
    for axes, (medium, values) in zip(panels, shares.items(), strict=True):
        for kind in KINDS:
            axes.plot(list(SIZES), [100 * values[kind, size] for size in SIZES], "o-", label=kind)
        axes.axhline(80, color="grey", linestyle=":")
        axes.set(title=f"{medium}: whole transfer of a state", xlabel="state size")
        axes.grid(visible=True, alpha=0.3)
    panels[0].set_ylabel("% of the raw client's speed, same bytes")
    panels[0].legend()
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / "storage.png"
    figure.savefig(path, dpi=120)
    return path


def main() -> None:
    header = ["state", "MB", "encode", "put", "get", "decode", "raw put", "raw get", "move", "of raw", "spread"]
    shares: dict[str, dict[tuple[str, str], float]] = {}
    parallel = []
    for open_medium in (open_files, open_s3):
        with open_medium() as medium:
            rows, shares[medium.name] = measure_sizes(medium)
            print(table(f"{medium.name}: MB/s of the packed object, median", header, rows), flush=True)
            parallel.append(measure_parallelism(medium))
            delayed: Any = DelayedStore(medium.store)
            parallel.append(measure_parallelism(medium._replace(name=f"{medium.name}, +20 ms", store=delayed)))
    columns = ["64 states of 1 MB, MB/s", "one by one", "in parallel", "gain", "spread"]
    print(table("saved and loaded by the state manager", columns, parallel))
    print(f"\nchart: {draw_chart(shares).relative_to(Path.cwd())}")


if __name__ == "__main__":
    main()
