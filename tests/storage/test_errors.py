"""Storage errors travel from nodes to the driver as they are."""

import pytest

from storage import errors
from storage.codec import HeaderTooShort
from storage.state import UnitId
from tests.error_trees import check_drawn, check_examples, check_travels

PLACE = ("memory:", "get", "a/key", "no answer")
EXAMPLES = [
    errors.StorageError("anything"),
    errors.InvalidStorageInput("a URL that cannot be right"),
    errors.UnstorableState("a/key", "state", type("Local", (), {}), TypeError("a lock")),
    errors.ObjectMissing("memory:", "a/key"),
    errors.AlreadyExists("memory:", "a/key"),
    errors.StoreUnavailable(*PLACE, attempts=3),
    errors.StoreTimeout(*PLACE),
    errors.StoreRefused(*PLACE, "Correct the credentials."),
    errors.StoreFull(*PLACE, "Make room."),
    errors.FolderNotOwned("file:///folder", "ada", "root"),
    errors.BadObject("a/key", "strange", "Look at it."),
    errors.DamagedObject("a/key", "truncated", "Restore it."),
    errors.ForeignObject("a/key", "signed by others", "Check the secret."),
    errors.NewerFormat("a/key", "format 9", "Upgrade."),
    HeaderTooShort("a/key", 4096, 100),
    errors.UnloadableState("a/key", "state", ImportError("no module")),
    errors.NotOwner("words", 3, 7),
    errors.OperatorInUse("words", "ab12", 7),
    errors.UnknownOperator("wrods", "memory:"),
    errors.LeaseClosed("000000000001-000000001-ab"),
    errors.TransferFailed({UnitId(0, 1): errors.LeaseClosed("a")}, {UnitId(0, 2): "a ref"}),
    errors._ObjectError.__new__(errors._ObjectError, "a base of others"),
]


def test_there_is_an_example_of_every_error() -> None:
    check_examples(errors.StorageError, EXAMPLES, "storage")


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_travels_with_its_message_and_its_facts(error: Exception) -> None:
    check_travels(error)


def test_the_tree_is_drawn_in_full() -> None:
    check_drawn(errors.StorageError, errors)
