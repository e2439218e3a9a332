import type { Runner } from "../../database/pool.ts";
import type { Attempt } from "../../records/attempt.ts";
import type { RecordId } from "../../records/record.ts";

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
export async function readAttempts(
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
