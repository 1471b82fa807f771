"""`python -m elastic.operators` compiles all kernels into the cache, so that no node has to."""

import time

from elastic.operators import kernels
from elastic.operators.columns import load_kernels


def main() -> None:
    started = time.perf_counter()
    load_kernels()
    print(f"{kernels.NAME}: kernels of keyed columns ready in {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()
