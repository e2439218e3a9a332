import { getOption } from "@bufbuild/protobuf";
import { type ErrorReason, ErrorReasonSchema } from "../gen/onceward/v1/errors_pb.ts";
import { type ReasonClass, reason as reasonFacts } from "../gen/onceward/v1/facts_pb.ts";

/** A reason for which a call is refused: the value of `google.rpc.ErrorInfo.reason`. `errors.proto` explains each. */
export type Reason = Exclude<keyof typeof ErrorReason, "UNSPECIFIED">;

const FACTS = ErrorReasonSchema.values
  .filter(({ number }) => number !== 0)
  .map((value) => [value.localName, getOption(value, reasonFacts)] as const);

/** The name of the google.rpc.Code of each reason, from `errors.proto`. */
export const CATALOGUE = Object.fromEntries(FACTS.map(([reason, { code }]) => [reason, code])) as Readonly<
  Record<Reason, string>
>;

const CLASSES: ReadonlyMap<string, ReasonClass> = new Map(
  FACTS.map(([reason, { reasonClass }]) => [reason, reasonClass]),
);

/** Returns the class of the reason for which a call was refused; undefined for any other error. */
export function refusalClass(error: unknown): ReasonClass | undefined {
  return error instanceof Refusal ? CLASSES.get(error.reason) : undefined;
}

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
 * The error of a refused call; `transport/errors.ts` converts it to the transport's error.
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
