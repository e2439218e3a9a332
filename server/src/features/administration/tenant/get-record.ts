import { create } from "@bufbuild/protobuf";
import { parseLookup } from "../../../core/claims/messages.ts";
import { attemptsOf } from "../../../core/domain/attempt.ts";
import { onlyValue } from "../../../core/domain/operation.ts";
import { createRecordTarget } from "../../../core/domain/record-target.ts";
import { Refusal } from "../../../core/domain/refusal.ts";
import { attemptMessage, recordMessage } from "../../../core/messages/record-messages.ts";
import { GetRecordResponseSchema } from "../../../gen/onceward/v1/tenant_admin_pb.ts";
import type { AdministrationParts, TenantAdminRpcs } from "../services.ts";
import { readAttempts } from "../store/read-attempts.ts";
import { providerLinks } from "./list-records.ts";

/** Returns the RPC that reads one record, with its past attempts. */
export function createGetRecord({
  pool,
  records,
  pepper,
}: AdministrationParts): TenantAdminRpcs<"getRecord"> {
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
  };
}
