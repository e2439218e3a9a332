/**
 * The error catalogue: every reason for which a call is refused, with its google.rpc code.
 *
 * `errors.proto` (enum ErrorReason) has the same list and explains each reason; a test compares the two.
 */
export const CATALOGUE = {
  INVALID_REQUEST: "INVALID_ARGUMENT",
  FINGERPRINT_MISMATCH: "FAILED_PRECONDITION",
  CLAIM_SUPERSEDED: "ABORTED",
  ALREADY_COMPLETED: "FAILED_PRECONDITION",
  ALREADY_RELEASED: "FAILED_PRECONDITION",
  RECORD_NOT_FOUND: "NOT_FOUND",
  RESULT_TOO_LARGE: "INVALID_ARGUMENT",
  RESPONSE_TOO_LARGE: "RESOURCE_EXHAUSTED",
  CREDENTIAL_MISSING: "UNAUTHENTICATED",
  CREDENTIAL_INVALID: "UNAUTHENTICATED",
  ROLE_DENIED: "PERMISSION_DENIED",
  NAMESPACE_DENIED: "PERMISSION_DENIED",
  TENANT_SUSPENDED: "PERMISSION_DENIED",
  DATABASE_UNAVAILABLE: "UNAVAILABLE",
  OVERLOADED: "UNAVAILABLE",
  RECORD_CONTENDED: "UNAVAILABLE",
  SHUTTING_DOWN: "UNAVAILABLE",
  DEADLINE_EXCEEDED: "DEADLINE_EXCEEDED",
  CANCELLED: "CANCELLED",
  INTERNAL: "INTERNAL",
  ETAG_MISMATCH: "ABORTED",
  TENANT_NOT_FOUND: "NOT_FOUND",
  TENANT_EXISTS: "ALREADY_EXISTS",
  NAMESPACE_NOT_FOUND: "NOT_FOUND",
  NAMESPACE_NOT_EMPTY: "FAILED_PRECONDITION",
  API_KEY_NOT_FOUND: "NOT_FOUND",
  RECORD_JOB_NOT_FOUND: "NOT_FOUND",
  QUOTA_RATE: "RESOURCE_EXHAUSTED",
  QUOTA_CONCURRENCY: "RESOURCE_EXHAUSTED",
  QUOTA_RECORDS: "RESOURCE_EXHAUSTED",
  QUOTA_BYTES: "RESOURCE_EXHAUSTED",
  ISSUER_UNAVAILABLE: "UNAVAILABLE",
  QUOTA_NAMESPACES: "RESOURCE_EXHAUSTED",
  QUOTA_RECORD_JOBS: "RESOURCE_EXHAUSTED",
  RECORD_UNREADABLE: "FAILED_PRECONDITION",
  RECORD_COUNT_MISMATCH: "FAILED_PRECONDITION",
  TENANT_MOVING: "UNAVAILABLE",
  KEY_TOO_OLD: "FAILED_PRECONDITION",
} as const;

/** A reason of the catalogue: the value of `google.rpc.ErrorInfo.reason`. */
export type Reason = keyof typeof CATALOGUE;

/** The name of a google.rpc.Code that the catalogue uses. */
export type CodeName = (typeof CATALOGUE)[Reason];

/** One request field that is malformed or over a limit; `description` names the limit. */
export interface Violation {
  readonly field: string;
  readonly description: string;
}

/** An exhausted quota. */
export interface QuotaViolation {
  /** The tenant: `tenant:<name>`. */
  readonly subject: string;
  /** The limit and its scope. */
  readonly description: string;
}

/**
 * The error of a refused call; `core/transport/errors.ts` converts it to the transport's error.
 *
 * `message` is sent to the caller: it must be true for every tenant and must not contain secrets.
 */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly reason: Reason;
  /** Machine-readable facts, for `ErrorInfo.metadata`. Never a key, a result or a secret. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Every violation at once, for INVALID_REQUEST. */
  readonly violations: readonly Violation[];
  /** For `QuotaFailure`. */
  readonly quota: QuotaViolation | undefined;
  /** When a retry may succeed, in milliseconds from now. */
  readonly retryAfterMs: number | undefined;

  /** `cause` is the underlying error; for the log only. */
  constructor(
    reason: Reason,
    message: string,
    details: Partial<Pick<Refusal, "metadata" | "violations" | "quota" | "retryAfterMs" | "cause">> = {},
  ) {
    super(message, { cause: details.cause });
    this.reason = reason;
    this.metadata = details.metadata ?? {};
    this.violations = details.violations ?? [];
    this.quota = details.quota;
    this.retryAfterMs = details.retryAfterMs;
  }
}

/** Returns the reason of an error as metrics name it: in lower case; `internal` for an error that is a defect. */
export function reasonName(error: unknown): string {
  return (error instanceof Refusal ? error.reason : "INTERNAL").toLowerCase();
}

/** Whether an error is a refusal for this reason. */
export function isRefusal(error: unknown, reason: Reason): boolean {
  return error instanceof Refusal && error.reason === reason;
}

/** Returns the refusal of a request with one malformed part. `description` follows the field's name. */
export function invalidRequest(field: string, description: string): Refusal {
  return new Refusal("INVALID_REQUEST", `${field} ${description}`, { violations: [{ field, description }] });
}

/** Returns the refusal of what waited for its turn too long. */
export function deadlinePassed(): Refusal {
  return new Refusal("DEADLINE_EXCEEDED", "The deadline passed before the database was reached.");
}

/** Returns CREDENTIAL_INVALID, with the same message for every cause, so that it gives an attacker no hint. */
export function credentialInvalid(cause?: unknown): Refusal {
  const message = "The credential is not valid: unknown, expired, revoked, or not for this server.";
  return new Refusal("CREDENTIAL_INVALID", message, { cause });
}
