"""The secret signs, and never shows itself."""

import copy
import hmac
import logging
import pickle
import traceback

import pytest

from storage import errors
from storage.codec import Secret, pack, unpack
from tests.storage.codec.objects import KEY, SECRET

WORD = "open sesame, open sesame"


def test_a_secret_hides_itself_wherever_it_is_printed(caplog: pytest.LogCaptureFixture) -> None:
    secret = Secret.of(WORD)
    logging.getLogger("codec").warning("%s %r %s", secret, secret, {"secret": secret})
    shown = [str(secret), repr(secret), f"{secret}", caplog.text, str([secret])]
    hidden = [WORD, secret._signing_key.hex(), repr(secret._signing_key)]
    assert "Secret" in caplog.text
    assert not [text for text in shown if any(part in text for part in hidden)]


def test_no_error_about_an_object_shows_a_secret() -> None:
    theirs = Secret.of(WORD)
    data = pack({"state": 1}, key=KEY, secret=theirs)
    with pytest.raises(errors.ForeignObject) as caught:
        unpack(data, key=KEY, secret=SECRET)
    story = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert "this application's secret" in story
    assert WORD not in story
    assert SECRET.reveal().decode() not in story
    assert SECRET._signing_key.hex() not in story
    assert repr(SECRET._signing_key) not in story


def test_a_secret_is_not_pickled_or_copied_by_accident() -> None:
    for accident in (pickle.dumps, copy.deepcopy, copy.copy):
        with pytest.raises(TypeError, match="reveal"):
            accident({"settings": [SECRET]} if accident is not copy.copy else SECRET)
    with pytest.raises(errors.UnstorableState, match="reveal"):
        pack({"state": {"settings": [SECRET]}}, key=KEY, secret=SECRET)


def test_a_revealed_secret_is_the_same_elsewhere() -> None:
    secret = Secret.random()
    assert Secret.of(secret.reveal()) == secret
    assert Secret.of(WORD) == Secret.of(WORD.encode())
    assert len({secret, Secret.of(secret.reveal()), Secret.random()}) == 2
    assert secret != secret.reveal()


def test_a_short_secret_is_refused_and_not_quoted() -> None:
    with pytest.raises(errors.InvalidStorageInput, match=r"6 bytes.*at least 16") as caught:
        Secret.of("sesame")
    assert "sesame" not in str(caught.value)


def test_the_signing_key_is_derived_and_never_changes() -> None:
    derived = hmac.digest(SECRET.reveal(), b"spark-elastic: signature of stored objects", "sha256")
    assert SECRET.sign(b"header") == hmac.digest(derived, b"header", "sha256")
    assert derived.hex() == "d42cdd4c9a84a1ff934cc4bfe38ba5574265dd25d163d7b50ebed0fd7294ea1d"
