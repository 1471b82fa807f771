"""What every tree of errors promises: it is drawn in one docstring, and an error survives a trip between processes."""

import copy
import pickle
from collections.abc import Sequence
from types import ModuleType


def leaves_and_branches(root: type[Exception]) -> list[type[Exception]]:
    """The root and all classes below it, each once."""
    found = {root: None}
    for child in root.__subclasses__():
        found |= dict.fromkeys(leaves_and_branches(child))
    return list(found)


def check_examples(root: type[Exception], examples: Sequence[Exception], package: str) -> None:
    """There is an example of every class of the package."""
    classes = {kind for kind in leaves_and_branches(root) if kind.__module__.split(".")[0] == package}
    assert {type(example) for example in examples} == classes


def check_drawn(root: type[Exception], module: ModuleType) -> None:
    """The docstring of the module draws every public class of it."""
    drawn = [line.strip("│├└─ ").split(" ")[0] for line in (module.__doc__ or "").splitlines()]
    for kind in leaves_and_branches(root):
        if kind.__module__ == module.__name__ and not kind.__name__.startswith("_"):
            assert kind.__name__ in drawn


def check_travels(error: Exception) -> None:
    """Pickled or copied, it is the same error with the same message, facts and notes."""
    error.add_note("a note")
    copies = [pickle.loads(pickle.dumps(error, protocol)) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)]  # noqa: S301
    for other in [*copies, copy.copy(error), copy.deepcopy(error)]:
        assert type(other) is type(error)
        assert (str(other), other.args) == (str(error), error.args)
        assert repr(vars(other)) == repr(vars(error))
