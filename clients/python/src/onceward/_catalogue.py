"""One class for each reason of errors.proto, which explains the reason and its metadata."""

from __future__ import annotations

from typing import Any

from ._errors import OncewardError

__all__ = [
    "AlreadyCompletedError",
    "AlreadyReleasedError",
    "ApiKeyNotFoundError",
    "CancelledError",
    "ClaimSupersededError",
    "CredentialInvalidError",
    "CredentialMissingError",
    "DatabaseUnavailableError",
    "DeadlineExceededError",
    "EtagMismatchError",
    "FingerprintMismatchError",
    "InternalError",
    "InvalidRequestError",
    "IssuerUnavailableError",
    "KeyTooOldError",
    "NamespaceDeniedError",
    "NamespaceNotEmptyError",
    "NamespaceNotFoundError",
    "OverloadedError",
    "QuotaBytesError",
    "QuotaConcurrencyError",
    "QuotaNamespacesError",
    "QuotaRateError",
    "QuotaRecordJobsError",
    "QuotaRecordsError",
    "RecordContendedError",
    "RecordCountMismatchError",
    "RecordJobNotFoundError",
    "RecordNotFoundError",
    "RecordUnreadableError",
    "ResponseTooLargeError",
    "ResultTooLargeError",
    "RoleDeniedError",
    "ShuttingDownError",
    "TenantExistsError",
    "TenantMovingError",
    "TenantNotFoundError",
    "TenantSuspendedError",
]


class _CatalogueError(OncewardError):
    """An error of one reason."""

    _reason = ""

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(self._reason, message, **facts)


class InvalidRequestError(_CatalogueError):
    """A field is malformed or over a limit: see ``violations``. Nothing happened."""

    _reason = "INVALID_REQUEST"


class FingerprintMismatchError(_CatalogueError):
    """The key was used for a different request. Nothing happened; a retry does not help."""

    _reason = "FINGERPRINT_MISMATCH"


class ClaimSupersededError(_CatalogueError):
    """Another holder has taken the claim over. Nothing happened."""

    _reason = "CLAIM_SUPERSEDED"


class KeyTooOldError(_CatalogueError):
    """The key was created longer ago than the namespace accepts, and has no record. Nothing happened."""

    _reason = "KEY_TOO_OLD"


class AlreadyCompletedError(_CatalogueError):
    """The claim was completed before with a different result, which is kept."""

    _reason = "ALREADY_COMPLETED"


class AlreadyReleasedError(_CatalogueError):
    """The claim was released before: claim again."""

    _reason = "ALREADY_RELEASED"


class RecordNotFoundError(_CatalogueError):
    """There is no such record: the key was never claimed, or its retention has ended."""

    _reason = "RECORD_NOT_FOUND"


class ResultTooLargeError(_CatalogueError):
    """The result is larger than the policy allows."""

    _reason = "RESULT_TOO_LARGE"


class ResponseTooLargeError(_CatalogueError):
    """The reply did not fit into the batch's reply: make the call outside a batch."""

    _reason = "RESPONSE_TOO_LARGE"


class CredentialMissingError(_CatalogueError):
    """There was no API key."""

    _reason = "CREDENTIAL_MISSING"


class CredentialInvalidError(_CatalogueError):
    """The API key is malformed, unknown, expired or revoked."""

    _reason = "CREDENTIAL_INVALID"


class RoleDeniedError(_CatalogueError):
    """The API key's role may not make this call."""

    _reason = "ROLE_DENIED"


class NamespaceDeniedError(_CatalogueError):
    """The API key is limited to other namespaces."""

    _reason = "NAMESPACE_DENIED"


class TenantMovingError(_CatalogueError):
    """The tenant is moving to another installation. The client retries until ``timeout_ms``."""

    _reason = "TENANT_MOVING"


class TenantSuspendedError(_CatalogueError):
    """The operator has suspended the tenant."""

    _reason = "TENANT_SUSPENDED"


class DatabaseUnavailableError(_CatalogueError):
    """The service's database did not answer; a write may have happened.

    The client retries until ``timeout_ms``.
    """

    _reason = "DATABASE_UNAVAILABLE"


class OverloadedError(_CatalogueError):
    """The replica's queue was full. The client retries until ``timeout_ms``."""

    _reason = "OVERLOADED"


class RecordContendedError(_CatalogueError):
    """The record changed too often during the call. The client retries until ``timeout_ms``."""

    _reason = "RECORD_CONTENDED"


class ShuttingDownError(_CatalogueError):
    """The replica is shutting down.

    The client retries, at another replica if there is one, until ``timeout_ms``.
    """

    _reason = "SHUTTING_DOWN"


class DeadlineExceededError(_CatalogueError):
    """The call's deadline passed at the service; a write may have happened.

    The client retries until ``timeout_ms``.
    """

    _reason = "DEADLINE_EXCEEDED"


class CancelledError(_CatalogueError):
    """The caller cancelled the call; a write may have happened."""

    _reason = "CANCELLED"


class InternalError(_CatalogueError):
    """A bug of the service; its log has the error under the request id."""

    _reason = "INTERNAL"


class EtagMismatchError(_CatalogueError):
    """Another caller changed the resource: read it again."""

    _reason = "ETAG_MISMATCH"


class TenantNotFoundError(_CatalogueError):
    """There is no such tenant."""

    _reason = "TENANT_NOT_FOUND"


class TenantExistsError(_CatalogueError):
    """A tenant of that name exists."""

    _reason = "TENANT_EXISTS"


class NamespaceNotFoundError(_CatalogueError):
    """The namespace was never declared."""

    _reason = "NAMESPACE_NOT_FOUND"


class NamespaceNotEmptyError(_CatalogueError):
    """The namespace has records, or 1,000 ended ones that are not deleted yet."""

    _reason = "NAMESPACE_NOT_EMPTY"


class ApiKeyNotFoundError(_CatalogueError):
    """The tenant has no such API key."""

    _reason = "API_KEY_NOT_FOUND"


class RecordJobNotFoundError(_CatalogueError):
    """The tenant has no such record job."""

    _reason = "RECORD_JOB_NOT_FOUND"


class QuotaRateError(_CatalogueError):
    """The tenant makes more operations a second than its quota. The client retries until ``timeout_ms``."""

    _reason = "QUOTA_RATE"


class QuotaConcurrencyError(_CatalogueError):
    """The tenant has as many calls in flight as its quota. The client retries until ``timeout_ms``."""

    _reason = "QUOTA_CONCURRENCY"


class QuotaRecordsError(_CatalogueError):
    """The tenant has as many records as its quota. The client retries until ``timeout_ms``."""

    _reason = "QUOTA_RECORDS"


class QuotaBytesError(_CatalogueError):
    """The tenant's results and checkpoints take as many bytes as its quota.

    The client retries until ``timeout_ms``.
    """

    _reason = "QUOTA_BYTES"


class IssuerUnavailableError(_CatalogueError):
    """The token's signing key is unknown, and its issuer does not answer.

    The client retries until ``timeout_ms``.
    """

    _reason = "ISSUER_UNAVAILABLE"


class QuotaNamespacesError(_CatalogueError):
    """The tenant has declared as many namespaces as its quota."""

    _reason = "QUOTA_NAMESPACES"


class QuotaRecordJobsError(_CatalogueError):
    """The tenant has as many unfinished record jobs as a tenant may have."""

    _reason = "QUOTA_RECORD_JOBS"


class RecordUnreadableError(_CatalogueError):
    """The service cannot decrypt the record's result or checkpoint.

    An operator has to act; a retry does not help.
    """

    _reason = "RECORD_UNREADABLE"


class RecordCountMismatchError(_CatalogueError):
    """The number of matching records is not the expected one: look at them again. Nothing happened."""

    _reason = "RECORD_COUNT_MISMATCH"


_CLASSES = {each._reason: each for each in _CatalogueError.__subclasses__()}


def error_of(reason: str, message: str, **facts: Any) -> OncewardError:
    """Returns an error of its reason's class; a plain OncewardError for a reason of a newer service."""
    known = _CLASSES.get(reason)
    return OncewardError(reason, message, **facts) if known is None else known(message, **facts)
