"""The S3 server itself keeps the promises that the ledger builds on."""

import pytest
from obstore.exceptions import AlreadyExistsError
from obstore.store import S3Store

from services import S3


def store(server: S3) -> S3Store:
    return S3Store.from_url(
        server.bucket(),
        endpoint=server.endpoint,
        region=server.region,
        access_key_id=server.access_key,
        secret_access_key=server.secret_key,
        client_options={"allow_http": True},
    )


def test_what_was_put_is_listed_and_read(versitygw: S3) -> None:
    bucket = store(versitygw)
    bucket.put("a/b.json", b"{}")
    assert [found["path"] for batch in bucket.list() for found in batch] == ["a/b.json"]
    assert bytes(bucket.get("a/b.json").bytes()) == b"{}"


def test_only_one_of_two_creations_of_a_key_succeeds(versitygw: S3) -> None:
    bucket = store(versitygw)
    bucket.put("entry", b"first", mode="create")
    with pytest.raises(AlreadyExistsError):
        bucket.put("entry", b"second", mode="create")
    assert bytes(bucket.get("entry").bytes()) == b"first"
