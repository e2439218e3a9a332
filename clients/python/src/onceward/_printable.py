"""Texts of others in messages for people."""

import re

#: Characters that control a terminal, or show text in another order, but line breaks and tabs.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
#: More than the service writes, with room for a key and an owner.
_MAX_CHARACTERS = 2048


def printable(text: object) -> str:
    """Returns a text for an error, a warning or a line of a log: characters that control a terminal become
    U+FFFD, and a text of more than 2,048 characters is cut.

    For texts of others, such as an error of the service.
    """
    shown = str(text)
    cut = shown if len(shown) <= _MAX_CHARACTERS else f"{shown[:_MAX_CHARACTERS]}…"
    return _CONTROLS.sub("\ufffd", cut)
