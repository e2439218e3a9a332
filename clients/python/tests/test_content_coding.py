"""In which coding a stored response is replayed."""

import gzip
import zlib

import pytest

from onceward._content_coding import in_accepted_coding

_GZIP = gzip.compress(b"charged")
_LARGE = gzip.compress(bytes(2**20 + 1))


@pytest.mark.parametrize(
    ("coding", "body"),
    [("gzip", _GZIP), ("GZIP", _GZIP), ("x-gzip", _GZIP), ("deflate", zlib.compress(b"charged"))],
)
def test_a_coding_is_decoded_for_a_client_that_does_not_accept_it(coding: str, body: bytes) -> None:
    headers = {"content-encoding": coding, "etag": '"v1"', "vary": "accept-encoding"}
    assert in_accepted_coding(headers, body, "identity") == (
        {"etag": 'W/"v1"', "vary": "accept-encoding"},
        b"charged",
    )


@pytest.mark.parametrize("accepted", [None, "gzip", "br, GZIP;q=0.1", "*", "deflate;q=0, *;q=0.5"])
def test_a_client_that_accepts_gzip_gets_it_as_it_is_stored(accepted: str | None) -> None:
    headers = {"content-encoding": "gzip"}
    assert in_accepted_coding(headers, _GZIP, accepted) == (headers, _GZIP)


@pytest.mark.parametrize("accepted", ["", "gzip; q=0", "br", "*;q=0", "gzip;q=0, *", "gzip;q=none"])
def test_a_client_that_refuses_gzip_gets_it_decoded(accepted: str) -> None:
    assert in_accepted_coding({"content-encoding": "gzip"}, _GZIP, accepted) == ({}, b"charged")


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", b"charged"),
        ("gzip", _GZIP[:-5]),
        ("gzip", _GZIP + _GZIP),
        ("gzip", _LARGE),
        ("compress", _GZIP),
        ("gzip, gzip", _GZIP),
        ("", _GZIP),
    ],
    ids=["no gzip", "cut", "two files", "too large", "unknown", "several codings", "no coding"],
)
def test_a_body_that_can_not_be_decoded_is_replayed_as_it_is_stored(coding: str, body: bytes) -> None:
    headers = {"content-encoding": coding}
    assert in_accepted_coding(headers, body, "identity") == (headers, body)
