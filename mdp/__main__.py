"""`python -m mdp` compiles the kernels of projections into the cache, so that no projection has to."""

import time

from mdp import project
from mdp.learning import learn
from migration import Workload


def main() -> None:
    began = time.perf_counter()
    workload, matrix = Workload([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]), learn([2, 3, 2, 4, 3, 2])
    for method in ("exact", "approximate"):
        project(workload, matrix, tau=0.5, method=method)
    print(f"kernels of projections ready in {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
