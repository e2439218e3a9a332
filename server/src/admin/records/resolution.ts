import { MAX_REASON_BYTES } from "../../domain/limits.ts";
import type { Policy } from "../../domain/policy.ts";
import type { Violations } from "../../domain/violations.ts";
import type { ResolveRecordRequest } from "../../gen/onceward/v1/tenant_admin_pb.ts";
import type { Result } from "../../records/record.ts";
import { digestResult } from "../../records/result-digest.ts";
import { checkResultSize, parseResult } from "../../records/result-requests.ts";

/** An administrator's decision about a record that its holder has left unresolved. */
export type Resolution =
  /** The record is forgotten, as if its key had never been claimed. */
  | { readonly kind: "forget" }
  /** The side effect did not happen: the next Claim is granted. */
  | { readonly kind: "release" }
  /** The side effect happened, with this result. */
  | { readonly kind: "complete"; readonly result: Result; readonly resultDigest: Uint8Array };

/** Parses how to resolve. @throws Refusal INVALID_REQUEST with every violation so far; RESULT_TOO_LARGE. */
export function parseResolution(
  resolution: ResolveRecordRequest["resolution"],
  policy: Policy,
  violations: Violations,
): Resolution {
  if (resolution.case === undefined) violations.add("resolution", "must be forget, release or complete");
  const result =
    resolution.case === "complete"
      ? parseResult("complete.result", resolution.value.result, violations)
      : undefined;
  violations.throwIfAny();
  switch (resolution.case) {
    case "forget":
    case "release":
      return { kind: resolution.case };
    default:
      if (result === undefined) throw new Error("a missing result is not a violation");
      checkResultSize(result, policy);
      return { kind: "complete", result, resultDigest: digestResult(result) };
  }
}

/** Adds a violation unless the administrator gave a reason. */
export function parseReason(reason: string, violations: Violations): void {
  violations.prose("reason", reason, { maxBytes: MAX_REASON_BYTES });
  if (reason.trim() === "") violations.add("reason", "is required");
}
