import { create } from "@bufbuild/protobuf";
import { onlyValue } from "../../domain/operation.ts";
import { createRecordTarget } from "../../domain/record-target.ts";
import { Refusal } from "../../domain/refusal.ts";
import { timestamp, Violations } from "../../domain/violations.ts";
import {
  CountRecordsResponseSchema,
  GetRecordResponseSchema,
} from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { attemptsOf } from "../../records/attempt.ts";
import { parseLookup } from "../../records/lookup.ts";
import { attemptMessage, recordMessage } from "../../records/record-messages.ts";
import { administeredNamespace } from "../own-tenant.ts";
import { scanUntil } from "../pages.ts";
import type { AdministrationParts, TenantAdminRpcs } from "../services.ts";
import { countRecords, type RecordCounts } from "./count-records.ts";
import { providerLinks } from "./list-records.ts";
import { readAttempts } from "./read-attempts.ts";

/** Returns the RPCs that read one record, with its past attempts, and count a namespace's records by their state. */
export function createReadRecords({
  pool,
  records,
  databaseClock,
  pageTokens,
  pepper,
}: AdministrationParts): TenantAdminRpcs<"getRecord" | "countRecords"> {
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

    async countRecords({ namespace, pageToken }, call) {
      const violations = new Violations();
      violations.name("namespace", namespace);
      const { id: tenantId } = administeredNamespace(call, namespace);
      const scope = [tenantId, "CountRecords", namespace];
      const [afterKey = ""] = pageTokens.read(scope, pageToken, violations) ?? [];
      violations.throwIfAny();

      const { items, next } = await scanUntil(Number.POSITIVE_INFINITY, afterKey, async (after: string) => {
        const range = { tenantId, namespace, afterKey: after };
        const counted = await countRecords(pool.of(call), range, databaseClock.latestMs());
        return { items: [counted.counts], next: counted.next };
      });
      const { oldestAmbiguousSinceMs: since, ...counts } = items.reduce(sum);
      return create(CountRecordsResponseSchema, {
        inProgress: BigInt(counts.inProgress),
        lapsed: BigInt(counts.lapsed),
        completed: BigInt(counts.completed),
        released: BigInt(counts.released),
        ambiguous: BigInt(counts.ambiguous),
        oldestAmbiguousSince: since === undefined ? undefined : timestamp(since),
        ...(next !== undefined && { nextPageToken: pageTokens.write(scope, [next]) }),
      });
    },
  };
}

function sum(one: RecordCounts, other: RecordCounts): RecordCounts {
  const since = [one.oldestAmbiguousSinceMs, other.oldestAmbiguousSinceMs].filter((ms) => ms !== undefined);
  return {
    inProgress: one.inProgress + other.inProgress,
    lapsed: one.lapsed + other.lapsed,
    completed: one.completed + other.completed,
    released: one.released + other.released,
    ambiguous: one.ambiguous + other.ambiguous,
    oldestAmbiguousSinceMs: since.length === 0 ? undefined : Math.min(...since),
  };
}
