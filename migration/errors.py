"""All errors of this package: typed, with their numbers as attributes and a last sentence that says what to do.

MigrationError
├── InvalidInput (also a ValueError)      an argument that is wrong
│   ├── InvalidAssignment                 gaps, overlaps, duplicate names
│   ├── InvalidWorkload                   NaN, negative, infinite, lengths that differ
│   ├── InvalidStandbys                   copies of unknown tasks, or an owner that is its own standby
│   ├── InvalidPlan                       a plan read from JSON contradicts itself
│   ├── InvalidSchedule                   moves or bounds that no schedule can satisfy
│   ├── UnknownNode                       a node that is not in the assignment
│   ├── UnknownStrategy                   a strategy or schedule that does not exist
│   ├── UnknownOption                     an option its strategy does not take
│   └── ValueDoesNotFit                   a value function for other tasks, nodes or balance
├── Infeasible                            no balanced assignment exists
├── KeysInfeasible                        a strategy cannot place all keys under the cap
├── TooManyEntries                        a strategy needs more routing-table entries than allowed
└── TooManyPartitions                     the exact answer has too many partitions to enumerate
"""

from collections.abc import Iterable, Sequence
from typing import Any


class MigrationError(Exception):
    """Base of all errors that this package raises.

    A pickled or copied error keeps its message and its attributes, because plans are also made in other processes.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        # The default calls the class with the message alone, which errors with attributes of their own do not accept.
        return _rebuild, (type(self), self.args), self.__dict__


class InvalidInput(MigrationError, ValueError):
    """An argument that no plan can be made from; nothing was changed."""


class InvalidAssignment(InvalidInput):
    """Intervals that do not cover every task exactly once, or names that are not distinct."""


class InvalidWorkload(InvalidInput):
    """Work or state sizes that are not finite, non-negative and of one length."""


class InvalidStandbys(InvalidInput):
    """Copies of tasks that do not exist, on nodes named twice, or on the node that owns the task."""


class InvalidPlan(InvalidInput):
    """A serialised plan whose parts contradict each other."""


class InvalidSchedule(InvalidInput):
    """Moves or bounds that no schedule can satisfy."""


class UnknownNode(InvalidInput):
    """A node that is not in the current assignment."""

    def __init__(self, node: str, known: Sequence[str], advice: str) -> None:
        self.node = node
        self.known = tuple(known)
        super().__init__(f"node {node!r} is not in the current assignment ({_format_names(known)}). {advice}")


class UnknownStrategy(InvalidInput):
    """A name that is not in the table of strategies (or schedules)."""

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        self.name = name
        self.known = tuple(known)
        super().__init__(f"unknown {kind} {name!r}. Use one of {_format_names(self.known)}.")


class UnknownOption(InvalidInput):
    """A keyword that the chosen strategy (or schedule) does not take."""

    def __init__(self, kind: str, name: str, option: str, known: Sequence[str]) -> None:
        self.name = name
        self.option = option
        self.known = tuple(known)
        takes = f"it takes {_format_names(known)}" if known else "it takes no options"
        super().__init__(f"{kind} {name!r} has no option {option!r}; {takes}. Remove it.")


class ValueDoesNotFit(InvalidInput):
    """A value function does not cover this plan: another operator, node count or balance, or too much drift.

    `why` is the reason that a plan made without it states; `numbers` are the values behind it.
    """

    def __init__(self, why: str, advice: str = "Project it again, or use strategy 'ssm'.", **numbers: float) -> None:
        self.why = why
        self.numbers = numbers
        super().__init__(f"{why}. {advice}")


class Infeasible(MigrationError):
    """No partition into `nodes` contiguous intervals keeps every interval within the cap.

    `heaviest_task` is the lone task above the cap when there is one, else None. `smallest_tau` makes
    this instance feasible; `most_nodes` is the largest smaller node count that is feasible at the given tau.
    """

    def __init__(
        self,
        *,
        tasks: int,
        nodes: int,
        tau: float,
        cap: float,
        heaviest_task: int | None,
        heaviest_work: float,
        smallest_tau: float,
        most_nodes: int,
    ) -> None:
        self.tasks = tasks
        self.nodes = nodes
        self.tau = tau
        self.cap = cap
        self.heaviest_task = heaviest_task
        self.heaviest_work = heaviest_work
        self.smallest_tau = smallest_tau
        self.most_nodes = most_nodes
        cause = (
            f"task {heaviest_task} alone carries {heaviest_work:g}, above the cap {cap:g}"
            if heaviest_task is not None
            else f"no {nodes} contiguous intervals stay within the cap {cap:g}"
        )
        super().__init__(
            f"cannot balance {tasks} tasks onto {nodes} nodes with tau={tau:g}: {cause}. "
            f"Raise tau to {_round_up(smallest_tau)}, use at most {most_nodes} nodes, "
            "or pass relax=True to accept the smallest feasible cap."
        )


class KeysInfeasible(MigrationError):
    """A strategy cannot place every key on a node without exceeding the cap; nothing is forced.

    `heaviest_hash` is the key that exceeds the cap on its own, or with the `least_pinned` work of a node, when there is
    one, else None. `pinned_node` is the node whose `pinned_work` alone exceeds the cap when there is one, else None.
    The same strategy succeeds with `smallest_theta`.
    """

    def __init__(
        self,
        *,
        strategy: str,
        keys: int,
        nodes: int,
        theta: float,
        cap: float,
        heaviest_hash: int | None,
        heaviest_work: float,
        smallest_theta: float,
        pinned_node: str | None = None,
        pinned_work: float = 0.0,
        least_pinned: float = 0.0,
    ) -> None:
        self.strategy = strategy
        self.keys = keys
        self.nodes = nodes
        self.theta = theta
        self.cap = cap
        self.heaviest_hash = heaviest_hash
        self.heaviest_work = heaviest_work
        self.smallest_theta = smallest_theta
        self.pinned_node = pinned_node
        self.pinned_work = pinned_work
        self.least_pinned = least_pinned
        causes, remedies = self._causes_and_remedies()
        *others, last = [f"Raise theta to {_round_up(smallest_theta)}", "pass relax=True to accept it", *remedies]
        super().__init__(
            f"cannot balance {keys:,} keys onto {nodes} nodes with theta={theta:g}: {', and '.join(causes)}. "
            f"{', '.join(others)}, or {last}."
        )

    def _causes_and_remedies(self) -> tuple[list[str], list[str]]:
        causes, remedies, above = [], [], f"above the cap {self.cap:g}"
        if self.pinned_node is not None:
            causes.append(f"the pinned work of node {self.pinned_node!r} alone is {self.pinned_work:g}, {above}")
            remedies.append("measure more keys of that node, so that they can move")
        if self.heaviest_hash is not None:
            carried = f"alone carries {self.heaviest_work:g}"
            if self.least_pinned:
                carried = (
                    f"carries {self.heaviest_work:g}, and every node at least {self.least_pinned:g} of pinned work"
                )
            causes.append(f"the key with hash {self.heaviest_hash} {carried}, {above}")
            remedies.append("split that key")
        return causes or [f"strategy {self.strategy!r} finds no node for some key under the cap {self.cap:g}"], remedies


class TooManyEntries(MigrationError):
    """A strategy needs more entries in the routing table than the caller allows.

    `fewest_entries` is the smallest limit found that the strategy keeps at this theta; its table may have fewer.
    """

    def __init__(self, *, strategy: str, theta: float, fewest_entries: int, most_entries: int) -> None:
        self.strategy = strategy
        self.theta = theta
        self.fewest_entries = fewest_entries
        self.most_entries = most_entries
        super().__init__(
            f"strategy {strategy!r} needs {fewest_entries:,} routing-table entries at theta={theta:g}, above the limit "
            f"{most_entries:,}. Raise most_entries to {fewest_entries}, raise theta, "
            "or pass relax=True to accept that many."
        )


class TooManyPartitions(MigrationError):
    """The layers of an exact sequence hold more partitions than the caller allows.

    `counts` holds the number of balanced partitions of every layer that would have to be enumerated.
    """

    def __init__(self, *, counts: Sequence[int], limit: int, what: str, advice: str) -> None:
        self.counts = tuple(counts)
        self.limit = limit
        sizes = ", ".join(f"{count:,}" if count < 10**15 else f"about 10^{len(str(count)) - 1}" for count in counts)
        super().__init__(f"{what} would enumerate {sizes} balanced partitions, more than the limit {limit:,}. {advice}")


def _rebuild(kind: type[MigrationError], args: tuple[Any, ...]) -> MigrationError:
    return kind.__new__(kind, *args)


def _format_names(names: Iterable[str]) -> str:
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:12])
    return shown + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def _round_up(tau: float) -> str:
    """Round tau up to few digits, so that the number in the message works when a user copies it."""
    for digits in range(2, 15):
        text = f"{tau:.{digits}f}"
        if float(text) < tau:
            text = f"{tau + 10.0**-digits:.{digits}f}"
        if float(text) >= tau and float(text) - tau <= 0.1 * max(tau, 1e-3):
            return text.rstrip("0").rstrip(".") if "." in text else text
    return repr(tau)
