import * as catalogue from "./catalogue.ts";
import { type CatalogueReason, type ErrorDetails, OncewardError } from "./errors.ts";

/** The class of each reason. */
const CLASSES: {
  readonly [R in CatalogueReason]: new (
    message: string,
    facts?: ErrorDetails,
  ) => OncewardError & { readonly reason: R };
} = {
  INVALID_REQUEST: catalogue.InvalidRequestError,
  FINGERPRINT_MISMATCH: catalogue.FingerprintMismatchError,
  CLAIM_SUPERSEDED: catalogue.ClaimSupersededError,
  ALREADY_COMPLETED: catalogue.AlreadyCompletedError,
  ALREADY_RELEASED: catalogue.AlreadyReleasedError,
  RECORD_NOT_FOUND: catalogue.RecordNotFoundError,
  RESULT_TOO_LARGE: catalogue.ResultTooLargeError,
  RESPONSE_TOO_LARGE: catalogue.ResponseTooLargeError,
  CREDENTIAL_MISSING: catalogue.CredentialMissingError,
  CREDENTIAL_INVALID: catalogue.CredentialInvalidError,
  ROLE_DENIED: catalogue.RoleDeniedError,
  NAMESPACE_DENIED: catalogue.NamespaceDeniedError,
  TENANT_SUSPENDED: catalogue.TenantSuspendedError,
  DATABASE_UNAVAILABLE: catalogue.DatabaseUnavailableError,
  OVERLOADED: catalogue.OverloadedError,
  RECORD_CONTENDED: catalogue.RecordContendedError,
  SHUTTING_DOWN: catalogue.ShuttingDownError,
  DEADLINE_EXCEEDED: catalogue.DeadlineExceededError,
  CANCELLED: catalogue.CancelledError,
  INTERNAL: catalogue.InternalError,
  ETAG_MISMATCH: catalogue.EtagMismatchError,
  TENANT_NOT_FOUND: catalogue.TenantNotFoundError,
  TENANT_EXISTS: catalogue.TenantExistsError,
  NAMESPACE_NOT_FOUND: catalogue.NamespaceNotFoundError,
  NAMESPACE_NOT_EMPTY: catalogue.NamespaceNotEmptyError,
  API_KEY_NOT_FOUND: catalogue.ApiKeyNotFoundError,
  RECORD_JOB_NOT_FOUND: catalogue.RecordJobNotFoundError,
  QUOTA_RATE: catalogue.QuotaRateError,
  QUOTA_CONCURRENCY: catalogue.QuotaConcurrencyError,
  QUOTA_RECORDS: catalogue.QuotaRecordsError,
  QUOTA_BYTES: catalogue.QuotaBytesError,
  ISSUER_UNAVAILABLE: catalogue.IssuerUnavailableError,
  QUOTA_NAMESPACES: catalogue.QuotaNamespacesError,
  QUOTA_RECORD_JOBS: catalogue.QuotaRecordJobsError,
  RECORD_UNREADABLE: catalogue.RecordUnreadableError,
  TENANT_MOVING: catalogue.TenantMovingError,
  RECORD_COUNT_MISMATCH: catalogue.RecordCountMismatchError,
};

/** Returns an error of its reason's class; a plain OncewardError for a reason of a newer service. */
export function errorOf(reason: string, message: string, facts: ErrorDetails): OncewardError {
  if (!isKnown(reason)) return new OncewardError(reason, message, facts);
  return new CLASSES[reason](message, facts);
}

function isKnown(reason: string): reason is CatalogueReason {
  return Object.hasOwn(CLASSES, reason);
}
