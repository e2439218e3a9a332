import type { Contended } from "../domain/claim.ts";
import type { Deadline } from "../domain/deadline.ts";
import { type LiveRecord, type RecordId, recordName } from "../domain/record.ts";
import { Refusal } from "../domain/refusal.ts";
import { type Batcher, createBatcher, type WeightOf } from "./batcher.ts";
import type { Pool, Statement } from "./pool.ts";
import { nameOfRow } from "./record-ids.ts";
import { APPLIED_COLUMNS, parseRecord, RECORD_COLUMNS, type RecordRow } from "./record-row.ts";

/** What a statement did to an operation's record, and what it saw. */
export interface Seen {
  /** The operation changed the record into `record`; otherwise `record` is what stood in its way. */
  readonly applied: boolean;
  readonly record: LiveRecord | undefined;
}

/**
 * How a statement ends whose `applied` holds the rows that it changed for the keys in `input`: with these and, if they are
 * not all, with the rows that it met. Where all went well, the second half is not run.
 */
export const APPLIED_AND_MET = `
select true as applied, ${APPLIED_COLUMNS} from applied r
union all
select false, ${RECORD_COLUMNS}
  from input i
  join records r using (tenant_id, namespace, key)
 where (select count(*) from applied) < cardinality($1::int[])`;

/** The row `r` of input `i`, if the token still names its claim and nothing has settled it, lease or no lease. */
export const UNFINISHED_BY_TOKEN = `
    r.tenant_id = i.tenant_id
    and r.namespace = i.namespace
    and r.key = i.key
    and r.fencing_token = i.fencing_token
    and r.state = 1
    and r.expires_at > now()`;

/** A row of a statement that changes records: those it changed, and, if any it did not, those that it met. */
export interface AttemptRow extends RecordRow {
  readonly applied: boolean;
}

/** One kind of operation that changes records, batched. */
export interface AttemptOptions<Op, Row> {
  readonly statement: Statement;
  /** The statement's parameters: one array literal a column. */
  readonly columns: (ops: readonly Op[]) => readonly string[];
  /** What each operation saw, from the statement's rows; undefined: there is no record. */
  readonly readRows: (rows: readonly Row[], ops: readonly Op[]) => readonly (Seen | undefined)[];
  readonly bytesOf?: (op: Op) => number;
  /** Whether operations on one key that arrive together may be answered from what the first of them left. */
  readonly shareOutcome: boolean;
  readonly maxInFlight: number;
  readonly weightOf: WeightOf;
}

/** Gathers operations of one kind from all callers into statements. */
export function createAttempts<Op extends { readonly id: RecordId }, Row extends RecordRow>(
  pool: Pool,
  { statement, columns, readRows, bytesOf, shareOutcome, maxInFlight, weightOf }: AttemptOptions<Op, Row>,
): Batcher<Op, Seen> {
  return createBatcher<Op, Seen>({
    nameOf: (op) => recordName(op.id),
    tenantOf: (op) => op.id.tenantId,
    weightOf,
    maxInFlight,
    ...(bytesOf && { bytesOf }),
    ...(shareOutcome && { follow: (seen) => ({ ...seen, applied: false }) }),
    async execute(ops) {
      const rows = await pool.run<Row>(statement, columns(ops), ops.length);
      return readRows(rows, ops).map((seen) => seen ?? NOTHING);
    },
  });
}

/** Reads the rows of APPLIED_AND_MET. */
export function readAppliedAndMet(
  rows: readonly AttemptRow[],
  ops: readonly { readonly id: RecordId }[],
): readonly (Seen | undefined)[] {
  return seenByName(rows, ops, (row) => row.applied);
}

/** What each operation saw, from rows that stand for one record each. */
export function seenByName<Row extends RecordRow>(
  rows: readonly Row[],
  ops: readonly { readonly id: RecordId }[],
  wasApplied: (row: Row) => boolean,
): readonly (Seen | undefined)[] {
  const byName = new Map<string, Seen>();
  for (const row of rows) {
    const name = nameOfRow(row);
    // A changed record may come a second time, as it stood before: the statement reads from its own start.
    if (byName.get(name)?.applied) continue;
    byName.set(name, { applied: wasApplied(row), record: parseRecord(row) });
  }
  return ops.map((op) => byName.get(recordName(op.id)));
}

const NOTHING: Seen = { applied: false, record: undefined };

/**
 * How often to look again at a record that could have been had as seen. Each look is a new statement with a new
 * snapshot; that somebody else gets in between every time takes a key that changes hands more often than once a
 * millisecond.
 */
const MAX_LOOKS = 8;
const CONTENDED_RETRY_AFTER_MS = 50;

/**
 * Tries an operation until it has an answer.
 *
 * @throws Refusal RECORD_CONTENDED after a bounded number of looks, or whatever `answer` refuses with.
 */
export async function attempt<Op, Outcome extends { readonly kind: string }>(
  attempts: Batcher<Op, Seen>,
  op: Op,
  deadline: Deadline,
  answer: (seen: Seen) => Outcome | Contended,
): Promise<Exclude<Outcome, Contended>> {
  for (let look = 1; look <= MAX_LOOKS; look++) {
    const outcome = answer(await attempts.submit(op, deadline));
    if (outcome.kind !== "contended") return outcome as Exclude<Outcome, Contended>;
  }
  throw new Refusal("RECORD_CONTENDED", "The key changed hands too often while this call looked.", {
    retryAfterMs: CONTENDED_RETRY_AFTER_MS,
  });
}
