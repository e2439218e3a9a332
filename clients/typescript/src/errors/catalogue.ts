import { type CatalogueReason, type ErrorDetails, OncewardError } from "./errors.ts";

/** The error class of one reason. */
interface ErrorClass<R extends CatalogueReason> {
  readonly reason: R;
  new (message: string, facts?: ErrorDetails): OncewardError & { readonly reason: R };
}

function errorFor<R extends CatalogueReason>(reason: R): ErrorClass<R> {
  // Not the class's own name, which a minifier changes.
  const name = `${reason.toLowerCase().replace(/(?:^|_)(.)/g, (_, letter: string) => letter.toUpperCase())}Error`;
  return class extends OncewardError {
    static readonly reason = reason;
    override readonly name = name;
    declare readonly reason: R;

    constructor(message: string, facts?: ErrorDetails) {
      super(reason, message, facts);
    }
  };
}

// errors.proto explains each reason and its metadata.

/** A field is malformed or over a limit: see `violations`. Nothing happened. */
export class InvalidRequestError extends errorFor("INVALID_REQUEST") {}
/** The key was used for a different request. Nothing happened; a retry does not help. */
export class FingerprintMismatchError extends errorFor("FINGERPRINT_MISMATCH") {}
/**
 * The key is older than its namespace remembers keys, and has no record: its operation may have happened, and been forgotten.
 * Nothing happened; a retry does not help. Find out whether the effect happened, and repeat it under a new key if it did not.
 */
export class KeyTooOldError extends errorFor("KEY_TOO_OLD") {
  /** When the key was made. Undefined if the service did not say so. */
  get keyCreatedAt(): Date | undefined {
    return dateOf(this.metadata.key_created_at);
  }

  /** Until when the key was accepted. Undefined if the service did not say so. */
  get acceptedUntil(): Date | undefined {
    return dateOf(this.metadata.accepted_until);
  }
}

function dateOf(rfc3339: string | undefined): Date | undefined {
  return rfc3339 === undefined ? undefined : new Date(rfc3339);
}
/** Another holder has taken the claim over. Nothing happened. */
export class ClaimSupersededError extends errorFor("CLAIM_SUPERSEDED") {}
/** The claim was completed before with a different result, which is kept. */
export class AlreadyCompletedError extends errorFor("ALREADY_COMPLETED") {}
/** The claim was released before: claim again. */
export class AlreadyReleasedError extends errorFor("ALREADY_RELEASED") {}
/** There is no such record: the key was never claimed, or its retention has ended. */
export class RecordNotFoundError extends errorFor("RECORD_NOT_FOUND") {}
/** The result is larger than the policy allows. */
export class ResultTooLargeError extends errorFor("RESULT_TOO_LARGE") {}
/** The reply did not fit into the batch's reply: make the call outside a batch. */
export class ResponseTooLargeError extends errorFor("RESPONSE_TOO_LARGE") {}

/** There was no API key. */
export class CredentialMissingError extends errorFor("CREDENTIAL_MISSING") {}
/** The API key is malformed, unknown, expired or revoked. */
export class CredentialInvalidError extends errorFor("CREDENTIAL_INVALID") {}
/** The API key's role may not make this call. */
export class RoleDeniedError extends errorFor("ROLE_DENIED") {}
/** The API key is limited to other namespaces. */
export class NamespaceDeniedError extends errorFor("NAMESPACE_DENIED") {}
/** The tenant is moving to another installation. The client retries until `timeoutMs`. */
export class TenantMovingError extends errorFor("TENANT_MOVING") {}
/** The operator has suspended the tenant. */
export class TenantSuspendedError extends errorFor("TENANT_SUSPENDED") {}

/** The service's database did not answer; a write may have happened. The client retries until `timeoutMs`. */
export class DatabaseUnavailableError extends errorFor("DATABASE_UNAVAILABLE") {}
/** The replica's queue was full. The client retries until `timeoutMs`. */
export class OverloadedError extends errorFor("OVERLOADED") {}
/** The record changed too often during the call. The client retries until `timeoutMs`. */
export class RecordContendedError extends errorFor("RECORD_CONTENDED") {}
/** The replica is shutting down. The client retries, at another replica if there is one, until `timeoutMs`. */
export class ShuttingDownError extends errorFor("SHUTTING_DOWN") {}
/** The call's deadline passed at the service; a write may have happened. The client retries until `timeoutMs`. */
export class DeadlineExceededError extends errorFor("DEADLINE_EXCEEDED") {}
/** The caller cancelled the call; a write may have happened. */
export class CancelledError extends errorFor("CANCELLED") {}
/** A bug of the service; its log has the error under the request id. */
export class InternalError extends errorFor("INTERNAL") {}

/** Another caller changed the resource: read it again. */
export class EtagMismatchError extends errorFor("ETAG_MISMATCH") {}
/** There is no such tenant. */
export class TenantNotFoundError extends errorFor("TENANT_NOT_FOUND") {}
/** A tenant of that name exists. */
export class TenantExistsError extends errorFor("TENANT_EXISTS") {}
/** The namespace was never declared. */
export class NamespaceNotFoundError extends errorFor("NAMESPACE_NOT_FOUND") {}
/** The namespace has records, or 1,000 ended ones that are not deleted yet. */
export class NamespaceNotEmptyError extends errorFor("NAMESPACE_NOT_EMPTY") {}
/** The tenant has no such API key. */
export class ApiKeyNotFoundError extends errorFor("API_KEY_NOT_FOUND") {}
/** The tenant has no such record job. */
export class RecordJobNotFoundError extends errorFor("RECORD_JOB_NOT_FOUND") {}

/** The tenant makes more operations a second than its quota. The client retries until `timeoutMs`. */
export class QuotaRateError extends errorFor("QUOTA_RATE") {}
/** The tenant has as many calls in flight as its quota. The client retries until `timeoutMs`. */
export class QuotaConcurrencyError extends errorFor("QUOTA_CONCURRENCY") {}
/** The tenant has as many records as its quota. The client retries until `timeoutMs`. */
export class QuotaRecordsError extends errorFor("QUOTA_RECORDS") {}
/** The tenant's results and checkpoints take as many bytes as its quota. The client retries until `timeoutMs`. */
export class QuotaBytesError extends errorFor("QUOTA_BYTES") {}

/** The token's signing key is unknown, and its issuer does not answer. The client retries until `timeoutMs`. */
export class IssuerUnavailableError extends errorFor("ISSUER_UNAVAILABLE") {}

/** The tenant has declared as many namespaces as its quota. */
export class QuotaNamespacesError extends errorFor("QUOTA_NAMESPACES") {}
/** The tenant has as many unfinished record jobs as a tenant may have. */
export class QuotaRecordJobsError extends errorFor("QUOTA_RECORD_JOBS") {}

/** The service cannot decrypt the record's result or checkpoint. An operator has to act; a retry does not help. */
export class RecordUnreadableError extends errorFor("RECORD_UNREADABLE") {}

/** The number of matching records is not the expected one: look at them again. Nothing happened. */
export class RecordCountMismatchError extends errorFor("RECORD_COUNT_MISMATCH") {}
