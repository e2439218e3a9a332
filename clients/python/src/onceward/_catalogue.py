"""The classes of errors that a caller of ``run`` handles one by one.

Errors of other reasons are plain ``OncewardError``s; errors.proto explains each reason and its metadata.
"""

from __future__ import annotations

import re
from typing import Any

from ._errors import OncewardError

__all__ = [
    "ClaimSupersededError",
    "CredentialInvalidError",
    "FingerprintMismatchError",
    "InvalidRequestError",
    "KeyTooOldError",
    "NamespaceDeniedError",
    "RoleDeniedError",
    "TenantSuspendedError",
]


class _CatalogueError(OncewardError):
    """An error of the reason that the class is named after."""

    _reason = ""

    def __init_subclass__(cls) -> None:
        if _CatalogueError in cls.__bases__:
            cls._reason = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__.removesuffix("Error")).upper()

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(self._reason, message, **facts)


class InvalidRequestError(_CatalogueError):
    """A field is malformed or over a limit: see ``violations``. Nothing happened."""


class FingerprintMismatchError(_CatalogueError):
    """The key was used for a different request. Nothing happened; a retry does not help."""


class ClaimSupersededError(_CatalogueError):
    """Another holder has taken the claim over. Nothing happened."""


class KeyTooOldError(_CatalogueError):
    """The key was created longer ago than the namespace accepts, and has no record. Nothing happened."""


class CredentialInvalidError(_CatalogueError):
    """The API key is malformed, unknown, expired or revoked."""


class RoleDeniedError(_CatalogueError):
    """The API key's role may not make this call."""


class NamespaceDeniedError(_CatalogueError):
    """The API key is limited to other namespaces."""


class TenantSuspendedError(_CatalogueError):
    """The operator has suspended the tenant."""


_CLASSES = {each._reason: each for each in _CatalogueError.__subclasses__()}


def error_of(reason: str, message: str, **facts: Any) -> OncewardError:
    """Returns an error of its reason's class; a plain OncewardError for a reason without one."""
    known = _CLASSES.get(reason)
    return OncewardError(reason, message, **facts) if known is None else known(message, **facts)
