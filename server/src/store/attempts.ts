import type pg from "pg";
import type { Contended } from "../domain/claim.ts";
import type { Deadline } from "../domain/deadline.ts";
import { type Ended, Failed, mapEach } from "../domain/ended.ts";
import { type LiveRecord, type RecordId, recordName } from "../domain/record.ts";
import { Refusal } from "../domain/refusal.ts";
import { type Batcher, createBatcher, type WeightOf } from "./batcher.ts";
import type { Pool, Statement } from "./pool.ts";
import { nameOfRow } from "./record-ids.ts";
import { APPLIED_COLUMNS, parseRecord, RECORD_COLUMNS, type RecordRow } from "./record-row.ts";

/** What a statement did to an operation's record: what it made of it, or what it met instead. */
export type Seen<Made = LiveRecord> =
  | { readonly applied: true; readonly record: Made }
  /** Undefined: there is no record. */
  | { readonly applied: false; readonly record: LiveRecord | undefined };

/** Where the rows are that a statement met for the keys in `input`: none are read if `applied` holds one for each. */
export const MET = `
  from input i
  join records r using (tenant_id, namespace, key)
 where (select count(*) from applied) < cardinality($1::int[])`;

/**
 * How a statement ends whose `applied` holds the rows that it changed for the keys in `input`: with these and, if they are
 * not all, with the rows that it met. Where all went well, the second half is not run.
 */
export const APPLIED_AND_MET = `
select true as applied, ${APPLIED_COLUMNS} from applied r
union all
select false, ${RECORD_COLUMNS} ${MET}`;

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
export interface AttemptOptions<Op, Row, Made = LiveRecord> {
  readonly statement: Statement;
  /** The statement's parameters: one array a column. */
  readonly columns: (ops: readonly Op[]) => readonly Buffer[];
  /** What each operation saw, from the statement's rows. */
  readonly readRows: (rows: readonly Row[], ops: readonly Op[]) => readonly Seen<Made>[];
  /** Tries an operation for which nobody else would share a statement; undefined: it takes the one for many. */
  readonly alone?: (op: Op) => Promise<Seen<Made> | undefined>;
  readonly bytesOf?: (op: Op) => number;
  /** What an operation sees that arrives with another on its key, from what that one saw; undefined: it goes later. */
  readonly follow?: (seen: Seen<Made>) => Seen<Made>;
  readonly maxInFlight: number;
  readonly weightOf: WeightOf;
}

/** Gathers operations of one kind from all callers into statements. */
export function createAttempts<
  Op extends { readonly id: RecordId },
  Row extends pg.QueryResultRow,
  Made = LiveRecord,
>(
  pool: Pool,
  {
    statement,
    columns,
    readRows,
    alone,
    bytesOf,
    follow,
    maxInFlight,
    weightOf,
  }: AttemptOptions<Op, Row, Made>,
): Batcher<Op, Seen<Made>> {
  return createBatcher<Op, Seen<Made>>({
    nameOf: (op) => recordName(op.id),
    tenantOf: (op) => op.id.tenantId,
    weightOf,
    maxInFlight,
    ...(bytesOf && { bytesOf }),
    ...(follow && { follow }),
    async execute(ops) {
      const [only] = ops;
      const seen = only !== undefined && ops.length === 1 ? await alone?.(only) : undefined;
      if (seen !== undefined) return [seen];
      return readRows(await pool.run<Row>(statement, columns(ops), ops.length), ops);
    },
  });
}

/** Reads the rows of APPLIED_AND_MET. */
export function readAppliedAndMet(rows: readonly AttemptRow[], ops: readonly Named[]): readonly Seen[] {
  const applied = recordsByName(rows.filter((row) => row.applied));
  const made = ops.map(({ id }) => applied.get(recordName(id)));
  return madeOrMet(
    made,
    rows.filter((row) => !row.applied),
    ops,
  );
}

/**
 * What each operation saw: what it made of its record, or else what it met. What was changed may come among what was met,
 * too, as it stood before: the statement reads from its own start.
 */
export function madeOrMet<Made>(
  made: readonly (Made | undefined)[],
  met: readonly RecordRow[],
  ops: readonly Named[],
): readonly Seen<Made>[] {
  const records = recordsByName(met);
  return ops.map(({ id }, index) => {
    const record = made[index];
    if (record !== undefined) return { applied: true, record };
    return { applied: false, record: records.size === 0 ? undefined : records.get(recordName(id)) };
  });
}

interface Named {
  readonly id: RecordId;
}

function recordsByName(rows: readonly RecordRow[]): Map<string, LiveRecord | undefined> {
  return new Map(rows.map((row) => [nameOfRow(row), parseRecord(row)]));
}

/**
 * How often to look again at a record that could have been had as seen. Each look is a new statement with a new
 * snapshot; that somebody else gets in between every time takes a key that changes hands more often than once a
 * millisecond.
 */
const MAX_LOOKS = 8;
const CONTENDED_RETRY_AFTER_MS = 50;

/**
 * Tries operations until each has an answer, or what `answer` throws, or RECORD_CONTENDED after a bounded number of looks.
 */
export async function attemptAll<Op, Outcome extends { readonly kind: string }, Made>(
  attempts: Batcher<Op, Seen<Made>>,
  ops: readonly Op[],
  deadline: Deadline,
  answer: (seen: Seen<Made>, op: Op) => Outcome | Contended,
  looks = MAX_LOOKS,
): Promise<Ended<Exclude<Outcome, Contended>>[]> {
  const seen = await attempts.submitAll(ops, deadline);
  const ended = mapEach(seen, (each, place) => answer(each, ops[place] as Op));
  const contended = placesOf(ended, isContended);
  if (contended.length > 0) {
    const again =
      looks === 1
        ? contended.map(() => new Failed(tooContended()))
        : await attemptAll(
            attempts,
            contended.map((place) => ops[place] as Op),
            deadline,
            answer,
            looks - 1,
          );
    for (const [i, place] of contended.entries()) ended[place] = again[i] as Ended<Outcome>;
  }
  return ended as Ended<Exclude<Outcome, Contended>>[];
}

function isContended(ended: Ended<{ readonly kind: string }>): boolean {
  return !(ended instanceof Failed) && ended.kind === "contended";
}

function placesOf<Item>(items: readonly Item[], is: (item: Item) => boolean): number[] {
  const places: number[] = [];
  items.forEach((item, place) => {
    if (is(item)) places.push(place);
  });
  return places;
}

function tooContended(): Refusal {
  return new Refusal("RECORD_CONTENDED", "The key changed hands too often while this call looked.", {
    retryAfterMs: CONTENDED_RETRY_AFTER_MS,
  });
}
