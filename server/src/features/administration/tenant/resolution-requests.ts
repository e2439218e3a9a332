import { MAX_REASON_BYTES } from "../../../core/domain/limits.ts";
import type { Policy } from "../../../core/domain/policy.ts";
import { digestResult } from "../../../core/domain/result-digest.ts";
import { checkResultSize, parseResult } from "../../../core/messages/result-requests.ts";
import type { Violations } from "../../../core/messages/violations.ts";
import type { ResolveRecordRequest } from "../../../gen/onceward/v1/tenant_admin_pb.ts";
import type { Resolution } from "../../jobs/resolution.ts";

/** Adds a violation unless the administrator gave a reason. */
export function parseReason(reason: string, violations: Violations): void {
  violations.prose("reason", reason, { maxBytes: MAX_REASON_BYTES });
  if (reason.trim() === "") violations.add("reason", "is required");
}

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
