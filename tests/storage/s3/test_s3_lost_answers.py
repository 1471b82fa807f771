"""Writes whose answer never came: a winner knows that it won, and a loser that it lost."""

import pytest

from storage.errors import AlreadyExists
from storage.stores.s3 import S3Store
from tests.storage.s3.conftest import DATA, Open
from tests.storage.s3.faulty_server import FaultyServer, hang_up, lose_answer, say


def test_a_winner_whose_answer_was_lost_knows_that_it_won(shaky: S3Store, faulty: FaultyServer) -> None:
    faulty.fail(lose_answer)
    shaky.put_if_absent("new.x", b"1")
    assert bytes(shaky.get("new.x")) == b"1"
    assert faulty.faults_left == 0


def test_a_loser_whose_first_attempt_failed_knows_that_it_lost(shaky: S3Store, faulty: FaultyServer) -> None:
    shaky.put("a.x", b"another writer's")
    faulty.fail(lose_answer)
    with pytest.raises(AlreadyExists):
        shaky.put_if_absent("a.x", b"mine")
    assert bytes(shaky.get("a.x")) == b"another writer's"


def test_two_conditional_writes_that_meet_are_decided_by_another_attempt(shaky: S3Store, faulty: FaultyServer) -> None:
    faulty.fail(say(409, "ConditionalRequestConflict"))
    shaky.put_if_absent("new.x", b"mine")
    faulty.fail(say(409, "ConditionalRequestConflict"))
    with pytest.raises(AlreadyExists):
        shaky.put_if_absent("new.x", b"mine, too")
    assert faulty.faults_left == 0


def test_an_object_in_parts_survives_faults_and_a_lost_last_answer(opened: Open, faulty: FaultyServer) -> None:
    store = opened(faulty, multipart_bytes=100)
    faulty.fail(say(503, "SlowDown"))  # at the beginning
    faulty.fail(hang_up, where=lambda request: request.method == "PUT")  # at a part
    faulty.fail(lose_answer, where=lambda request: request.method == "POST" and "uploadId=" in request.path)
    store.put("large.x", DATA)
    assert bytes(store.get("large.x")) == DATA
    assert faulty.faults_left == 0
