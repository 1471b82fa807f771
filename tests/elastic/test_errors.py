"""The engine's errors survive the way from nodes to the driver, and each says what to do."""

import re

import pytest

from elastic import errors
from tests.error_trees import check_drawn, check_travels, leaves_and_branches

EXAMPLES: list[errors.ElasticError] = [
    errors.KeysCannotBeSplit("counts"),
    errors.KeysCannotBeSplit(None, ["words", "letters"]),
    errors.KeysCannotMove("counts"),
    errors.KeysCannotMove(None),
    errors.KeysCannotMove(None, ["words", "letters"]),
    errors.ElasticError("anything. Do something."),
    errors.InvalidJob("no key. Name one."),
    errors.UnknownColumn("wrod", ["word", "count"]),
    errors.UnsupportedKeyType("tags", "list<item: string>"),
    errors.InvalidEventTime("ts", "bigint"),
    errors.NotAnOperator(dict),
    errors.InvalidProcessor("Counts", "state 'n' is declared twice. Give each state its own name"),
    errors.UnsupportedProcessor("type interval in state 'n'", "Use a string instead"),
    errors.InvalidStateCall("count", "there is no grouping key in init()"),
    errors.IndivisibleState("newest", "Newest", "its state, a value of type NoneType, belongs to the task"),
    errors.InvalidProtectedKeys("counts", "7.5 does not have the type of a key", "Give keys of type int64."),
    errors.StatefulShuffle("enrich", "Count"),
    errors.CombineDropsCostKey("enrich", ["kind"], "combine did not keep the cost key column 'kind' and its type"),
    errors.UnmergeableOperator("Median", "it does not define merge()"),
    errors.InvalidStore("no store has the scheme ''."),
    errors.SparkConnectUnsupported(),
    errors.SparkRefused("read the source", "Path does not exist: /texts", "Correct --path."),
    errors.StreamFailed("words", "SerializationException: size of data is not 8"),
    errors.InvalidKey("5 is no string"),
    errors.InvalidGraph("a graph that no job can run. Correct it."),
    errors.UnknownSource("join", "person", ["persons", "auctions"]),
    errors.CyclicGraph(["a", "b"]),
    errors.UnreachableStage("lonely"),
    errors.UnreadInput("bids", ["join"]),
    errors.SchemasDoNotFit("join", "column 'id' has two types", "Give it one type"),
    errors.UnserializableOperator("Counts", TypeError("cannot pickle a lock")),
    errors.TooFewSlots(4, 4, 6, "local[4]"),
    errors.SpeculationEnabled(),
    errors.InvalidSetting("heartbeat_seconds", -1, "it must be above zero"),
    errors.UnknownSetting("hartbeat_seconds", ["heartbeat_seconds", "host"]),
    errors.MissingSecret("/a/file", "permission denied"),
    errors.ExposedSecret("--set", "secret", "Set ELASTIC_SECRET."),
    errors.MissingPackage("talking to a job", "httpx2", "api"),
    errors.JobNameInUse("words"),
    errors.IncompatibleRestart("words", "tasks", 64, 32),
    errors.MissingUpgrade("words", "counts", "Counts", "1", "2"),
    errors.StateNewer("words", "counts", "Counts", "2", "1"),
    errors.UpgradeFailed("Counts", "task 5", "1", "2", "Traceback ...\nKeyError: 'total'\n", "'a'"),
    errors.JobExists("words", "memory:"),
    errors.JobExists("words", "memory:", is_same=True),
    errors.InvalidExport("/a/file", "its checksum is another"),
    errors.StateNotPortable("counts", "it belongs to the task. Import it with tasks=8"),
    errors.CheckpointMismatch("words", 0, 17),
    errors.NullKey("word", 3, 17),
    errors.RowTooLarge(100_000_000, 64 << 20, 17),
    errors.OperatorFailed("Counts", 5, 17, "Traceback ...\nZeroDivisionError: division by zero\n", "{'word': 'a'}"),
    errors.DivisionFailed("Counts", "part", "Traceback ...\nZeroDivisionError: division by zero\n"),
    errors.CombineFailed("Counts", "Traceback ...\nZeroDivisionError: division by zero\n"),
    errors.InvalidOutput("Counts", "column 'count' is missing"),
    errors.NodeInUse("node-3", [4, 7]),
    errors.PoisonedStep("node-3", 17, 0, [5], 3, "its process died"),
    errors.NodeStartFailed("node-3", "ModuleNotFoundError: No module named 'texts'", 2),
    errors.NodeStartTimeout(3, 8, 60.0),
    errors.SparkLost("Py4JNetworkError: Answer from Java side is empty"),
    errors.StoreUnreachable(600.0, "connection refused"),
    errors.SinkFailed("words", "OSError: no space left on device"),
    errors.ResultsExpired(3, 1_000),
    errors.InvalidRequest("nodes=0 cannot be. Give a number above zero."),
    errors.InvalidAutoscaling("floor", 0, "it must be a whole number of nodes, 1 or more"),
    errors.UnknownPolicy("utilization", ["utilisation"]),
    errors.KeysNotCounted(["words"]),
    errors.AutoscalerRunning("words"),
    errors.MigrationInProgress(),
    errors.MigrationFailed("no node came up."),
    errors.JobStopped("words"),
    errors.StateUnavailable(5, "node-3"),
    errors.QueryFailed("counts", "ZeroDivisionError('division by zero')"),
    errors.KeysNotMeasured("words", ["node-2"]),
    errors.UnknownEvent("an event"),
    errors.IllegalTransition("planned", "state installed"),
]

# The verbs with which an advice begins.
ADVICE = [
    "Ask",
    "Look",
    "Check",
    "Correct",
    "Do",
    "Emit",
    "Export",
    "Filter",
    "Free",
    "Give",
    "Import",
    "Install",
    "Move",
    "Report",
    "Name",
    "Open",
    "Pass",
    "Raise",
    "Restart",
    "Restore",
    "Retry",
    "Run:",
    "Set",
    "Start",
    "Stop",
    "Store",
    "Use",
    "Wait",
]


def test_there_is_an_example_of_every_error() -> None:
    here = {kind for kind in leaves_and_branches(errors.ElasticError) if kind.__module__ == errors.__name__}
    assert {type(example) for example in EXAMPLES} == here


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_keeps_its_message_and_attributes_when_pickled(error: Exception) -> None:
    check_travels(error)


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_the_last_sentence_says_what_to_do(error: Exception) -> None:
    *facts, advice = re.split(r"[.?] |\n", str(error))
    assert facts
    assert advice.split()[0] in ADVICE


def test_the_docstring_draws_the_whole_tree() -> None:
    check_drawn(errors.ElasticError, errors)


def test_the_nearest_name_is_suggested_for_a_mistyped_one() -> None:
    assert "Did you mean 'word'?" in str(errors.UnknownColumn("wrod", ["count", "word"]))
    assert "Did you mean 'heartbeat_seconds'?" in str(errors.UnknownSetting("hartbeat_second", ["heartbeat_seconds"]))
    assert "Did you mean" not in str(errors.UnknownColumn("word", ["x"]))


def test_too_few_slots_advises_the_largest_possible_number_of_nodes() -> None:
    assert "at most 2 nodes" in str(errors.TooFewSlots(nodes=4, slots=4, needed=6, master="local[4]"))


def test_a_failed_operator_is_reported_with_its_traceback_and_its_row() -> None:
    error = errors.OperatorFailed("Counts", 5, 17, "Traceback ...\nKeyError: 'x'\n", "{'word': 'a'}")
    assert "KeyError: 'x'\nFirst row of its input: {'word': 'a'}\n" in str(error)
    assert "row" not in str(errors.OperatorFailed("Counts", 5, 17, "KeyError: 'x'")).splitlines()[1]


@pytest.mark.parametrize(
    ("next_batch", "consequence"), [(20, "would be lost"), (17, "source offsets differ"), (3, "skipped as a replay")]
)
def test_a_checkpoint_mismatch_names_its_consequence(next_batch: int, consequence: str) -> None:
    assert consequence in str(errors.CheckpointMismatch("words", next_batch, 17))
