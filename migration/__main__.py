"""`python -m migration` compiles every kernel into the cache, so that later processes start fast."""

import time

import numpy as np

from migration import (
    AdditiveTerms,
    AdditiveValue,
    Assignment,
    KeyLoads,
    Workload,
    kernel_info,
    plan,
    plan_keys,
    plan_sequence,
)
from migration.keys import KEY_STRATEGIES
from migration.keys.bound import lower_bound
from migration.keys.compact import group_keys, materialise, plan_records
from migration.keys.problem import KeyProblem


def main() -> None:
    began = time.perf_counter()
    workload, current = Workload.uniform(8), Assignment.even(8, 2)
    plan(current, 3, workload)
    plan(current, 1, workload, leaving=["node-1"])
    terms = AdditiveTerms(boundary=np.zeros(9), interval=np.zeros((9, 9)))
    plan(current, 3, workload, strategy="mtm", value=AdditiveValue({3: terms}))
    plan(current, 3, workload, standby_count=1)
    plan_sequence(current, [3, 2], workload)
    loads = KeyLoads(range(4), [0, 0, 0, 1], None, [1.0, 1.0, 1.0, 1.0])
    for strategy in KEY_STRATEGIES:
        for theta in (0.0, 1.0):  # with and without moves
            plan_keys(loads, 2, theta, strategy, relax=True)
    lower_bound(KeyProblem.of(loads, 2, 0.0, 1))
    keys = group_keys(loads)
    materialise(plan_records(keys.records, 2, 0.0).records, keys)
    kernel = kernel_info()
    print(
        f"{kernel.name}, ready in {time.perf_counter() - began:.1f} s"
        + (f", cached in {kernel.cache}" if kernel.cache else "")
    )


if __name__ == "__main__":
    main()
