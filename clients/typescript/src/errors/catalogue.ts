import { type CatalogueReason, type ErrorDetails, OncewardError } from "./errors.ts";

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

// Those that a caller of `run` handles one by one. Errors of other reasons are plain OncewardErrors; errors.proto explains each.

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

/** The API key is malformed, unknown, expired or revoked. */
export class CredentialInvalidError extends errorFor("CREDENTIAL_INVALID") {}
/** The API key's role may not make this call. */
export class RoleDeniedError extends errorFor("ROLE_DENIED") {}
/** The API key is limited to other namespaces. */
export class NamespaceDeniedError extends errorFor("NAMESPACE_DENIED") {}
/** The operator has suspended the tenant. */
export class TenantSuspendedError extends errorFor("TENANT_SUSPENDED") {}
