"""Synthetic workloads of the experiments, by seed."""

from collections.abc import Callable, Mapping

import numpy as np

from migration import Workload

_SIGMA = 0.3  # of the logarithm: the heaviest of 64 tasks weighs about twice the median
_KEYS = 20_000
_EXPONENT = 0.8  # at 1 the most frequent key alone is heavier than what one of 16 nodes may carry


def log_normal(tasks: int, seed: int = 0) -> Workload:
    """Work and state are independent: busy tasks need not be large."""
    rng = np.random.default_rng([seed, 1])
    return Workload(rng.lognormal(0, _SIGMA, tasks), rng.lognormal(0, _SIGMA, tasks))


def equal(tasks: int, seed: int = 0) -> Workload:  # noqa: ARG001 - the signature of WORKLOADS
    return Workload.uniform(tasks)


def zipf(tasks: int, seed: int = 0) -> Workload:
    """Keys with Zipf frequencies, hashed to tasks: work is how often the keys of a task come, state their number."""
    rng = np.random.default_rng([seed, 2])
    task_of_key = rng.integers(tasks, size=_KEYS)
    frequency = np.arange(1, _KEYS + 1) ** -_EXPONENT
    return Workload(
        np.bincount(task_of_key, frequency, tasks), np.bincount(task_of_key, minlength=tasks).astype(np.float64)
    )


WORKLOADS: Mapping[str, Callable[[int, int], Workload]] = {"log-normal": log_normal, "equal": equal, "zipf": zipf}
