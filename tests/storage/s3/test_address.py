"""S3 URLs: what they say, and that they never carry, or repeat, a secret."""

import pytest

from storage.errors import InvalidStorageInput
from storage.stores.s3.address import Address


def test_an_address_has_a_bucket_a_prefix_an_endpoint_and_a_region() -> None:
    address = Address.parse("s3://elastic/team/state?endpoint=http://127.0.0.1:9000&region=eu-west-3")
    assert address == Address("elastic", "team/state/", "http://127.0.0.1:9000", "eu-west-3")


@pytest.mark.parametrize(
    "url",
    [
        "s3://elastic/",
        "s3://elastic/team/state.v1",
        "s3://elastic/team?endpoint=https://minio.example:9000",
        "s3://elastic/?region=eu-west-3",
    ],
)
def test_an_address_prints_as_the_url_it_was_read_from(url: str) -> None:
    assert Address.parse(url).url == url
    assert Address.parse(Address.parse(url).url) == Address.parse(url)


def test_slashes_around_a_prefix_do_not_matter() -> None:
    assert Address.parse("s3://elastic").prefix == Address.parse("s3://elastic/").prefix == ""
    assert Address.parse("s3://elastic/team/").prefix == Address.parse("s3://elastic/team").prefix == "team/"


@pytest.mark.parametrize(
    "url",
    [
        "s3://AKIAEXAMPLE:hunter2@elastic/state",
        "s3://elastic/state?secret_key=hunter2",
        "s3://elastic/state?hunter2",
        "s3://elastic/state?endpoint=http://user:hunter2@host:9000",
        "s3://elastic/state?endpoint=http://host:9000/?token=hunter2",
        "s3://elastic/state?endpoint=hunter2",
        "s3://elastic/state?endpoint=http://host:hunter2",
        "s3://elastic/state?region=hunter2!",
        "s3://elastic/hunter2/../state",
        "s3://elastic//hunter2//state",
        "s3://elastic/state#hunter2",
        "s3://hunter2?/state",
        "s3:///hunter2",
        "http://elastic/hunter2",
        "s3://[hunter2",
        "s3://elastic/" + 30 * "hunter2",
    ],
)
def test_an_invalid_url_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(InvalidStorageInput) as refusal:
        Address.parse(url)
    assert "hunter2" not in f"{refusal.value!r} {refusal.value}"
    assert refusal.value.__suppress_context__ or refusal.value.__context__ is None
