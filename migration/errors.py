"""Every error of this package, typed, with its numbers as attributes and a last sentence that says what to do.

MigrationError
├── InvalidInput (also a ValueError)      the question itself is wrong
│   ├── InvalidAssignment                 gaps, overlaps, duplicate names
│   ├── InvalidWorkload                   NaN, negative, infinite, lengths that differ
│   ├── InvalidPlan                       a plan read from JSON contradicts itself
│   ├── InvalidSchedule                   moves or bounds that no schedule could satisfy
│   ├── UnknownNode                       a name that owns nothing
│   ├── UnknownStrategy                   a strategy or schedule nobody registered
│   ├── UnknownOption                     an option its strategy does not take
│   └── ValueDoesNotFit                   a value function that was made for something else
├── Infeasible                            a right question that has no balanced answer
├── IllegalEvent                          a hand-over hears what cannot happen in its phase
└── TooManyPartitions                     an exact answer exists, but is too large to enumerate
"""

from collections.abc import Iterable, Sequence
from typing import Any


class MigrationError(Exception):
    """Base of everything this package raises on purpose.

    Pickled or copied, an error keeps its message and its facts: plans are also made in other processes.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        # The default calls the class with the message alone, which no error here with facts of its own accepts.
        return _revived, (type(self), self.args), self.__dict__


class InvalidInput(MigrationError, ValueError):
    """An argument that no plan could be made from; nothing was changed."""


class InvalidAssignment(InvalidInput):
    """Intervals that do not cover every task exactly once, or names that are not distinct."""


class InvalidWorkload(InvalidInput):
    """Work or state sizes that are not finite, non-negative and of one length."""


class InvalidPlan(InvalidInput):
    """A serialised plan that contradicts itself."""


class InvalidSchedule(InvalidInput):
    """Moves or bounds that no schedule could satisfy."""


class UnknownNode(InvalidInput):
    """A node that the current assignment does not know."""

    def __init__(self, node: str, known: Sequence[str], advice: str) -> None:
        self.node = node
        self.known = tuple(known)
        super().__init__(f"node {node!r} is not in the current assignment ({_listed(known)}). {advice}")


class UnknownStrategy(InvalidInput):
    """A name that is not in the table of strategies (or schedules)."""

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        self.name = name
        self.known = tuple(known)
        super().__init__(f"unknown {kind} {name!r}. Use one of {_listed(self.known)}.")


class UnknownOption(InvalidInput):
    """A keyword that the chosen strategy (or schedule) does not take."""

    def __init__(self, kind: str, name: str, option: str, known: Sequence[str]) -> None:
        self.name = name
        self.option = option
        self.known = tuple(known)
        takes = f"it takes {_listed(known)}" if known else "it takes no options"
        super().__init__(f"{kind} {name!r} has no option {option!r}; {takes}. Remove it.")


class ValueDoesNotFit(InvalidInput):
    """A value function says nothing about this question: another operator, node count or balance, or too much drift.

    `why` is what a plan made without it gives as its reason; `numbers` are the facts behind it.
    """

    def __init__(self, why: str, advice: str = "Project it again, or use strategy 'ssm'.", **numbers: float) -> None:
        self.why = why
        self.numbers = numbers
        super().__init__(f"{why}. {advice}")


class Infeasible(MigrationError):
    """No partition into `nodes` contiguous intervals keeps every interval within the cap.

    `heaviest_task` is the lone task above the cap when there is one, else None. `smallest_tau` makes this
    very instance feasible; `most_nodes` is the largest smaller node count that is feasible at the asked tau.
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
            f"Raise tau to {_rounded_up(smallest_tau)}, use at most {most_nodes} nodes, "
            "or pass relax=True to accept the smallest feasible cap."
        )


class IllegalEvent(MigrationError):
    """An event that has no row in the table of a hand-over; nothing was changed."""

    def __init__(self, phase: str, event: str) -> None:
        self.phase = phase
        self.event = event
        super().__init__(f"a hand-over that is {phase} cannot hear '{event}'. Tell it what happened, in order.")


class TooManyPartitions(MigrationError):
    """The layers of an exact sequence hold more partitions than the caller allows.

    `counts` holds the number of balanced partitions of every layer that would have to be enumerated.
    """

    def __init__(self, *, counts: Sequence[int], limit: int, what: str, advice: str) -> None:
        self.counts = tuple(counts)
        self.limit = limit
        sizes = ", ".join(f"{count:,}" if count < 10**15 else f"about 10^{len(str(count)) - 1}" for count in counts)
        super().__init__(f"{what} would enumerate {sizes} balanced partitions, more than the limit {limit:,}. {advice}")


def _revived(kind: type[MigrationError], args: tuple[Any, ...]) -> MigrationError:
    return kind.__new__(kind, *args)


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:12])
    return shown + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def _rounded_up(tau: float) -> str:
    """The shortest number not below tau, so that copying it from the message works."""
    for digits in range(2, 15):
        text = f"{tau:.{digits}f}"
        if float(text) < tau:
            text = f"{tau + 10.0**-digits:.{digits}f}"
        if float(text) >= tau and float(text) - tau <= 0.1 * max(tau, 1e-3):
            return text.rstrip("0").rstrip(".") if "." in text else text
    return repr(tau)
