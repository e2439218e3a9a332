import { create } from "@bufbuild/protobuf";
import { loadPolicies } from "../../../core/calls/authority.ts";
import type { Call } from "../../../core/calls/call.ts";
import { parseLookup, parsing } from "../../../core/claims/messages.ts";
import { attemptsOf } from "../../../core/domain/attempt.ts";
import { onlyValue } from "../../../core/domain/operation.ts";
import { type LiveRecord, recordName } from "../../../core/domain/record.ts";
import { createRecordTarget } from "../../../core/domain/record-target.ts";
import { Refusal } from "../../../core/domain/refusal.ts";
import { attemptMessage, recordMessage } from "../../../core/messages/record-messages.ts";
import { withResult } from "../../../core/store/records/large-results.ts";
import { withoutValues } from "../../../core/store/records/record-row.ts";
import type { Snapshot } from "../../../core/store/tenants/audit-events.ts";
import {
  GetRecordResponseSchema,
  type ResolveRecordRequest,
  ResolveRecordResponseSchema,
} from "../../../gen/onceward/v1/tenant_admin_pb.ts";
import { type ResolveCommand, recordToChange } from "../../jobs/resolution.ts";
import { lockRecord, resolveRecord } from "../../jobs/store/resolve-record.ts";
import { recordChange } from "../audited-change.ts";
import type { TenantAdminOptions, TenantAdminRpcs } from "../services.ts";
import { readAttempts } from "../store/read-attempts.ts";
import { providerLinks } from "./list-records.ts";
import { parseReason, parseResolution } from "./resolution-requests.ts";

/** Returns the RPCs for one record. */
export function createRecordHandlers({
  pool,
  records,
  changes,
  encryption,
  databaseClock,
  pepper,
  onSettled,
}: TenantAdminOptions): TenantAdminRpcs<"getRecord" | "resolveRecord"> {
  const recordTarget = createRecordTarget(pepper);

  return {
    async getRecord(request, call) {
      const id = parseLookup(request, call.principal);
      const record = onlyValue(await records.read([id], call));
      if (record === undefined) {
        throw new Refusal(
          "RECORD_NOT_FOUND",
          "There is no such record: the key was never claimed, or its retention has ended.",
          { metadata: { audit_target: recordTarget(id) } },
        );
      }
      // Read after the record, so that no attempt is missing that ended before the record was read.
      const attempts = attemptsOf(record, await readAttempts(pool.of(call), id));
      const providerLink = (await providerLinks([id.namespace], call)).get(id.namespace);
      return create(GetRecordResponseSchema, {
        record: recordMessage(record),
        attempts: attempts.map(attemptMessage),
        auditTarget: recordTarget(id),
        ...(providerLink && { providerLink }),
      });
    },

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
  return { id, resolution, reason, fencingToken: fencingToken === 0n ? undefined : fencingToken };
}

/** Returns the record with the payload of the request where the database did not return the result's payload. */
function replyRecord(record: LiveRecord, { resolution }: ResolveCommand) {
  return recordMessage(resolution.kind === "complete" ? withResult(record, resolution.result) : record);
}

/** Returns the parts of a record that audit events may show: neither its key nor its result. */
function recordSnapshot({ phase, fencingToken, attempt, owner }: LiveRecord): Snapshot {
  return { state: phase.kind, fencingToken: String(fencingToken), attempt, owner };
}
