"""The codings of stored responses (RFC 9110, 8.4.1)."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from ._limits import MAX_RESULT_BYTES

#: The format of each coding, as zlib names it. Python has no brotli.
_FORMATS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


def in_accepted_coding(
    headers: Mapping[str, str], body: bytes | None, accept_encoding: str | None
) -> tuple[Mapping[str, str], bytes | None]:
    """Returns a stored response in a coding that the client accepts: the body as it is stored, or decoded.

    So the answer to a first client, compressed within the guard, also suits one that takes no compression. A
    body that can't be decoded is returned as it is stored, as RFC 9110, 12.5.3 allows: one in several codings
    or an unknown one, one of damaged bytes, and one that is larger than 1 MiB when decoded.
    """
    coding = headers.get("content-encoding", "").lower()
    if coding not in _FORMATS or body is None or _accepts(accept_encoding, coding):
        return headers, body
    decoded = _decode(body, _FORMATS[coding])
    if decoded is None:
        return headers, body
    kept = {name: value for name, value in headers.items() if name != "content-encoding"}
    # A strong ETag names the bytes of one coding (RFC 9110, 8.8.3.3).
    if kept.get("etag", "").startswith('"'):
        kept["etag"] = f"W/{kept['etag']}"
    return kept, decoded


def _accepts(accept_encoding: str | None, coding: str) -> bool:
    """Returns whether Accept-Encoding (RFC 9110, 12.5.3) allows a coding; without it, each is accepted."""
    if accept_encoding is None:
        return True
    weights = {}
    for part in accept_encoding.lower().split(","):
        name, *parameters = (text.strip() for text in part.split(";"))
        weight = next((each[2:] for each in parameters if each.startswith("q=")), "1")
        weights[name] = _number(weight)
    return weights.get(coding, weights.get("*", 0)) > 0


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0


def _decode(body: bytes, wbits: int) -> bytes | None:
    """Returns None if the bytes can't be decoded, or are larger than 1 MiB afterwards."""
    decoder = zlib.decompressobj(wbits)
    try:
        decoded = decoder.decompress(body, MAX_RESULT_BYTES + 1)
    except zlib.error:
        return None
    is_whole = decoder.eof and not decoder.unused_data
    return decoded if is_whole and len(decoded) <= MAX_RESULT_BYTES else None
