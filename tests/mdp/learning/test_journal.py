"""What the engine wrote down is what is learned from; the engine's own journal writes it here."""

from typing import Any

import pytest

import storage
from mdp.errors import InvalidLog
from mdp.learning import learn, read_journal
from storage.journal import JobJournal, MigrationBegan, MigrationEnded, ScalingDecided


def url_of_journal(*endings: dict[str, Any], name: str = "journal-test") -> str:
    """A store with a journal in which every migration began and ended so."""
    url = f"memory:{name}"
    store = storage.open(url)
    store.delete([entry.key for entry in store.list()])
    journal = JobJournal(store, "words")
    for ending in endings:
        journal.append(MigrationBegan(mode="live", transfer="store"))
        journal.append(MigrationEnded(**{"outcome": "done", "tasks_moved": 3, **ending}))
    return url


def went(before: int, after: int, **facts: Any) -> dict[str, Any]:
    return {"nodes_before": before, "nodes_after": after, **facts}


def test_migrations_that_were_done_are_learned() -> None:
    url = url_of_journal(went(4, 6), went(6, 6), went(6, 4), went(4, 6))
    counts = read_journal(url, "words")
    assert counts.nodes.tolist() == [4, 6, 6, 4, 6]
    matrix = learn(counts, repeats="rebalance")
    assert matrix.observed.tolist() == [[0, 0, 2], [0, 0, 0], [1, 0, 1]]
    assert matrix.origin["source"] == f"journal of words in {url}"


def test_what_was_cancelled_or_failed_is_no_migration_and_breaks_the_run() -> None:
    url = url_of_journal(
        went(4, 6), went(6, 5, outcome="cancelled"), went(5, 8), went(8, 8, outcome="failed"), went(8, 4)
    )
    counts = read_journal(url, "words")
    assert counts.nodes.tolist() == [4, 6, 5, 8, 4]
    assert counts.runs.tolist() == [0, 0, 1, 1, 1]
    assert learn(counts, repeats="rebalance").observations == 3


def test_a_request_that_moved_nothing_is_no_rebalance() -> None:
    assert read_journal(url_of_journal(went(4, 4, tasks_moved=0), went(4, 5)), "words").nodes.tolist() == [4, 5]


def test_other_records_are_passed_over() -> None:
    url = url_of_journal(went(4, 5))
    journal = JobJournal(storage.open(url), "words")
    journal.append(ScalingDecided(policy="auto", floor=1, ceiling=9, nodes=5, target=7, reason="busy"))
    journal.append(MigrationBegan())  # and its driver fell
    assert read_journal(url, "words").nodes.tolist() == [4, 5]


def test_a_journal_without_migrations_is_refused() -> None:
    with pytest.raises(InvalidLog, match="'other' in memory:journal-test has no migration that was done"):
        read_journal(url_of_journal(went(4, 5)), "other")


@pytest.mark.parametrize("damaged", [b"{", b"[]", b'{"kind": "ended", "outcome": "done", "nodes_before": 4}'])
def test_a_damaged_record_is_named(damaged: bytes) -> None:
    url = url_of_journal(went(4, 5))
    storage.open(url).put("operators/words/journal/000000000009.json", damaged)
    with pytest.raises(InvalidLog, match="operators/words/journal/"):
        read_journal(url, "words")
