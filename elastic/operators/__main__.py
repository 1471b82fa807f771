"""`python -m elastic.operators` compiles every kernel into the cache, so that no node has to."""

import time

from elastic.operators import kernels
from elastic.operators.columns.warm_up import load_kernels


def main() -> None:
    began = time.perf_counter()
    load_kernels()
    print(f"{kernels.NAME}, keyed columns ready in {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
