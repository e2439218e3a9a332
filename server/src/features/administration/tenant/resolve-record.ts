import { create } from "@bufbuild/protobuf";
import { loadPolicies } from "../../../core/calls/authority.ts";
import type { Call } from "../../../core/calls/call.ts";
import { parsing } from "../../../core/claims/messages.ts";
import { MAX_REASON_BYTES } from "../../../core/domain/limits.ts";
import type { Policy } from "../../../core/domain/policy.ts";
import { type LiveRecord, recordName } from "../../../core/domain/record.ts";
import { createRecordTarget } from "../../../core/domain/record-target.ts";
import { digestResult } from "../../../core/domain/result-digest.ts";
import { recordMessage } from "../../../core/messages/record-messages.ts";
import { checkResultSize, parseResult } from "../../../core/messages/result-requests.ts";
import type { Violations } from "../../../core/messages/violations.ts";
import { withResult } from "../../../core/store/records/large-results.ts";
import { withoutValues } from "../../../core/store/records/record-row.ts";
import type { Snapshot } from "../../../core/store/tenants/audit-events.ts";
import {
  type ResolveRecordRequest,
  ResolveRecordResponseSchema,
} from "../../../gen/onceward/v1/tenant_admin_pb.ts";
import { type Resolution, type ResolveCommand, recordToChange } from "../../jobs/resolution.ts";
import { lockRecord, resolveRecord } from "../../jobs/store/resolve-record.ts";
import { recordChange } from "../audited-change.ts";
import type { AdministrationParts, TenantAdminRpcs } from "../services.ts";

/** Returns the RPC that resolves one record, whoever holds it. */
export function createResolveRecord({
  pool,
  changes,
  encryption,
  databaseClock,
  pepper,
  onSettled,
}: AdministrationParts): TenantAdminRpcs<"resolveRecord"> {
  const recordTarget = createRecordTarget(pepper);

  return {
    async resolveRecord(request, call) {
      await loadPolicies([request.namespace], call);
      const command = parseResolve(request, call);
      const record = await pool.of(call).transaction(async (transaction) => {
        // A record that cannot be decrypted can be forgotten.
        const openRow = command.resolution.kind === "forget" ? withoutValues : encryption.openRow;
        const locked = await lockRecord(transaction, command.id, openRow, databaseClock.latestMs());
        const was = recordToChange(locked, command);
        if (was === undefined) return locked;
        const became = await resolveRecord(transaction, command, encryption);
        await recordChange(transaction, call, {
          action: "ResolveRecord",
          target: recordTarget(command.id),
          reason: command.reason,
          before: recordSnapshot(was),
          ...(became && { after: recordSnapshot(became) }),
        });
        return became;
      });
      // Forgetting raised the tenant's generation, which invalidates its cached completions.
      changes.tenantChanged(command.id.tenantId);
      onSettled(recordName(command.id));
      return create(ResolveRecordResponseSchema, record && { record: replyRecord(record, command) });
    },
  };
}

/** Parses a resolution. @throws Refusal INVALID_REQUEST with every violation; NAMESPACE_DENIED; RESULT_TOO_LARGE. */
function parseResolve(request: ResolveRecordRequest, { principal }: Call): ResolveCommand {
  const { id, policy, violations } = parsing(request, principal);
  const { reason, fencingToken } = request;
  parseReason(reason, violations);
  if (fencingToken < 0n) violations.add("fencing_token", "must be a token that Claim returned, or 0");
  const resolution = parseResolution(request.resolution, policy, violations);
  return {
    id,
    resolution,
    reason,
    recordJob: undefined,
    fencingToken: fencingToken === 0n ? undefined : fencingToken,
  };
}

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

/** Returns the record with the payload of the request where the database did not return the result's payload. */
function replyRecord(record: LiveRecord, { resolution }: ResolveCommand) {
  return recordMessage(resolution.kind === "complete" ? withResult(record, resolution.result) : record);
}

/** Returns the parts of a record that audit events may show: neither its key nor its result. */
function recordSnapshot({ phase, fencingToken, attempt, owner }: LiveRecord): Snapshot {
  return { state: phase.kind, fencingToken: String(fencingToken), attempt, owner };
}
