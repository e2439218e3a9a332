import * as catalogue from "./catalogue.ts";
import { type ErrorDetails, OncewardError } from "./errors.ts";

/** By their reasons. A list without the reasons' names, because every bundle has them already. */
const CLASSES = new Map(
  [
    catalogue.InvalidRequestError,
    catalogue.FingerprintMismatchError,
    catalogue.ClaimSupersededError,
    catalogue.AlreadyCompletedError,
    catalogue.AlreadyReleasedError,
    catalogue.RecordNotFoundError,
    catalogue.ResultTooLargeError,
    catalogue.ResponseTooLargeError,
    catalogue.CredentialMissingError,
    catalogue.CredentialInvalidError,
    catalogue.RoleDeniedError,
    catalogue.NamespaceDeniedError,
    catalogue.TenantSuspendedError,
    catalogue.DatabaseUnavailableError,
    catalogue.OverloadedError,
    catalogue.RecordContendedError,
    catalogue.ShuttingDownError,
    catalogue.DeadlineExceededError,
    catalogue.CancelledError,
    catalogue.InternalError,
    catalogue.EtagMismatchError,
    catalogue.TenantNotFoundError,
    catalogue.TenantExistsError,
    catalogue.NamespaceNotFoundError,
    catalogue.NamespaceNotEmptyError,
    catalogue.ApiKeyNotFoundError,
    catalogue.RecordJobNotFoundError,
    catalogue.QuotaRateError,
    catalogue.QuotaConcurrencyError,
    catalogue.QuotaRecordsError,
    catalogue.QuotaBytesError,
    catalogue.IssuerUnavailableError,
    catalogue.QuotaNamespacesError,
    catalogue.QuotaRecordJobsError,
    catalogue.RecordUnreadableError,
    catalogue.TenantMovingError,
    catalogue.RecordCountMismatchError,
    catalogue.KeyTooOldError,
  ].map((each) => [each.reason as string, each] as const),
);

/** Returns an error of its reason's class; a plain OncewardError for a reason of a newer service. */
export function errorOf(reason: string, message: string, facts: ErrorDetails): OncewardError {
  const Known = CLASSES.get(reason);
  return Known === undefined ? new OncewardError(reason, message, facts) : new Known(message, facts);
}
