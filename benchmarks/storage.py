"""How fast state becomes bytes, travels and comes back: `make bench-storage`.

Every figure is MB/s of the packed object, the median of several rounds, next to what the raw client does with the very
same bytes in the same round: `put` then `get` for S3, write + fsync + rename then read for files.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import pyarrow as pa

import storage
from benchmarks.report import RESULTS, table
from scripts import s3_server
from storage.codec import Secret, pack, unpack
from storage.state import Manifests, Save, StateManager, Unit

MEGABYTE = 1e6
SIZES = {"10 kB": 10_000, "1 MB": 1_000_000, "10 MB": 10_000_000, "100 MB": 100_000_000}
SECRET = Secret.random()
KEY = "bench/object.state"


def words(rows: int, rng: np.random.Generator) -> list[str]:
    return [f"{number:016x}" for number in rng.integers(0, 2**63, rows).tolist()]


def dictionary(size: int, rng: np.random.Generator) -> dict[str, int]:
    rows = max(size // 28, 1)  # 16 characters, 4 bytes of offset, 8 of the count
    return dict(zip(words(rows, rng), rng.integers(0, 1_000_000, rows).tolist(), strict=True))


def arrow_table(size: int, rng: np.random.Generator) -> pa.Table:
    rows = max(size // 36, 1)
    counts = rng.integers(0, 1_000_000, rows)
    return pa.table({"word": words(rows, rng), "count": counts, "score": rng.random(rows)})


def numpy_array(size: int, rng: np.random.Generator) -> "np.ndarray[Any, np.dtype[np.float64]]":
    return rng.random(size // 8)


KINDS: dict[str, Callable[[int, np.random.Generator], Any]] = {
    "dict of str -> int": dictionary,
    "Arrow table": arrow_table,
    "NumPy array": numpy_array,
}


class Place(NamedTuple):
    """A store, and the same medium without us: write bytes durably, read them back."""

    name: str
    store: storage.Store
    raw_put: Callable[[bytes], object]
    raw_get: Callable[[], object]


@contextmanager
def file_place() -> Iterator[Place]:
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
        yield Place("file", store, write, raw.read_bytes)
        store.close()


@contextmanager
def s3_place() -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="bench-storage-") as folder:
        real = s3_server.minio_binary() is not None
        serving = s3_server.minio_server(Path(folder)) if real else s3_server.moto_server()
        with serving as server:
            server.create_bucket("bench")
            client = server.client()
            store = storage.open(server.url("bench", "ours"), **server.settings())
            yield Place(
                "MinIO" if real else "moto",
                store,
                lambda data: client.put_object(Bucket="bench", Key="raw/object", Body=data),
                lambda: client.get_object(Bucket="bench", Key="raw/object")["Body"].read(),
            )
            store.close()


def seconds(action: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    answer = action()
    return time.perf_counter() - began, answer


class Round(NamedTuple):
    """Seconds of one round: ours step by step, then the raw client's with the same bytes."""

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


def one_round(place: Place, state: Any) -> tuple[int, Round]:
    encode, packed = seconds(lambda: pack({"state": state}, key=KEY, secret=SECRET))
    put, _ = seconds(lambda: place.store.put(KEY, packed))
    get, stored = seconds(lambda: place.store.get(KEY))
    decode, _ = seconds(lambda: unpack(stored.data, key=KEY, secret=SECRET).parts["state"])
    data = bytes(packed)
    raw_put, _ = seconds(lambda: place.raw_put(data))
    raw_get, _ = seconds(place.raw_get)
    return len(data), Round(encode, put, get, decode, raw_put, raw_get)


def measured(place: Place) -> tuple[list[list[str]], dict[tuple[str, str], float]]:
    rows, shares = [], {}
    for kind, make in KINDS.items():
        for label, size in SIZES.items():
            state = make(size, np.random.default_rng(1))
            rounds = [one_round(place, state) for _ in range(4 if size > 10_000_000 else 9)][1:]  # the first warms up
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


class Distant:
    """A store behind a network: every put and get takes 20 ms more, as between two zones of a region and a disk."""

    def __init__(self, store: storage.Store) -> None:
        self._store = store

    def __getattr__(self, operation: str) -> Any:
        if operation in ("put", "get"):
            time.sleep(0.02)
        return getattr(self._store, operation)


def in_parallel(place: Place, count: int = 64, size: int = 1_000_000) -> list[str]:
    rng = np.random.default_rng(2)
    states = {Unit.of_task(task): arrow_table(size, rng) for task in range(count)}
    alone, together = [], []
    controller = Manifests(place.store, SECRET, "bench")
    controller.recover()
    with StateManager(place.store, SECRET, "bench") as manager, controller.leases.open("bench") as lease:

        def one_by_one() -> None:
            for unit, state in states.items():
                manager.load(manager.save(unit, state, batch=1, lease=lease))

        def all_at_once() -> None:
            saves = [Save(unit, state, batch=1) for unit, state in states.items()]
            refs = manager.save_many(saves, lease=lease).result()
            manager.load_many(refs.values()).result()

        for _ in range(4):
            alone.append(seconds(one_by_one)[0])
            together.append(seconds(all_at_once)[0])
    gains = [slow / fast for slow, fast in zip(alone[1:], together[1:], strict=True)]
    total = count * size / MEGABYTE
    return [
        place.name,
        f"{total / float(np.median(alone[1:])):.0f}",
        f"{total / float(np.median(together[1:])):.0f}",
        f"{float(np.median(gains)):.2f}",
        f"{min(gains):.2f}..{max(gains):.2f}",
    ]


def picture(shares: dict[str, dict[tuple[str, str], float]]) -> Path:
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, len(shares), figsize=(11, 4), sharey=True, layout="constrained")
    for axes, (place, values) in zip(panels, shares.items(), strict=True):
        for kind in KINDS:
            axes.plot(list(SIZES), [100 * values[kind, size] for size in SIZES], "o-", label=kind)
        axes.axhline(80, color="grey", linestyle=":")
        axes.set(title=f"{place}: a state's whole way", xlabel="state size")
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
    for opening in (file_place, s3_place):
        with opening() as place:
            rows, shares[place.name] = measured(place)
            print(table(f"{place.name}: MB/s of the packed object, median", header, rows), flush=True)
            parallel.append(in_parallel(place))
            distant: Any = Distant(place.store)
            parallel.append(in_parallel(place._replace(name=f"{place.name}, 20 ms away", store=distant)))
    columns = ["64 states of 1 MB, MB/s", "one by one", "in parallel", "gain", "spread"]
    print(table("saved and loaded by the state manager", columns, parallel))
    print(f"\npicture: {picture(shares).relative_to(Path.cwd())}")


if __name__ == "__main__":
    main()
