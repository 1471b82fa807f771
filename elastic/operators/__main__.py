"""`python -m elastic.operators` compiles all kernels into the cache, so that no node has to."""

import time

from elastic.operators import kernels
from elastic.operators.columns import load_kernels
from elastic.routing import key_counter, partial, table_lookup


def main() -> None:
    started = time.perf_counter()
    load_kernels()
    table_lookup.load()
    key_counter.load()
    partial.load()
    seconds = time.perf_counter() - started
    parts = "keyed columns, key tables, key counters and partial grouping"
    print(f"{kernels.NAME}: kernels of {parts} ready in {seconds:.1f} s")


if __name__ == "__main__":
    main()
