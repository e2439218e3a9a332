import { create } from "@bufbuild/protobuf";
import type { Runner } from "../../database/pool.ts";
import { onlyValue } from "../../domain/operation.ts";
import { Refusal } from "../../domain/refusal.ts";
import { GetRecordResponseSchema } from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { type Attempt, attemptsOf } from "../../records/attempt.ts";
import { parseLookup } from "../../records/lookup.ts";
import type { RecordId } from "../../records/record.ts";
import { attemptMessage, recordMessage } from "../../records/record-messages.ts";
import type { TenantRpc } from "../services.ts";
import { providerLinks } from "./provider-links.ts";

/** Returns one record, with its past attempts. */
export const getRecord: TenantRpc<"getRecord"> = async (request, call, { pool, records, recordTarget }) => {
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
};

const readPastAttempts = {
  name: "read_past_attempts",
  text: `
select r.past_attempts
  from records r
 where r.tenant_id = $1::int and r.namespace = $2::text and r.key = $3::text`,
};

/**
 * An attempt as `records.past_attempts` keeps it: texts, because the only function that makes a JSON object
 * and is immutable makes one of texts. Times are milliseconds since the Unix epoch. A field without a value
 * is missing.
 */
interface StoredAttempt {
  readonly attempt: string;
  readonly token: string;
  readonly owner: string;
  readonly claimed: string;
  readonly checkpoint?: string;
  readonly ended: string;
  readonly ending: "superseded" | "released" | "resolved" | "given back";
  readonly reason?: string;
  /** Of "resolved" by a record job: its id. */
  readonly job?: string;
}

/**
 * Returns the ended attempts that a key's row keeps, oldest first: those that the take-overs and resolutions
 * of this server version ended. Most rows keep none.
 */
async function readAttempts(
  runner: Runner,
  { tenantId, namespace, key }: RecordId,
): Promise<readonly Attempt[]> {
  type Row = { readonly past_attempts: readonly StoredAttempt[] | null };
  const [row] = await runner.run<Row>(readPastAttempts, [tenantId, namespace, key]);
  return (row?.past_attempts ?? []).map(parse);
}

function parse(stored: StoredAttempt): Attempt {
  return {
    number: Number(stored.attempt),
    fencingToken: BigInt(stored.token),
    owner: stored.owner,
    claimedAtMs: Number(stored.claimed),
    checkpoint: stored.checkpoint ?? "",
    ending: stored.ending,
    endedAtMs: Number(stored.ended),
    reason: stored.reason ?? "",
    recordJob: stored.job === undefined ? undefined : BigInt(stored.job),
  };
}
