import type pg from "pg";
import type { Contended } from "../../domain/claim.ts";
import type { Deadline } from "../../domain/deadline.ts";
import { type LiveRecord, type RecordId, recordName } from "../../domain/record.ts";
import { Refusal } from "../../domain/refusal.ts";
import { mapSettled, Rejected, type Settled } from "../../domain/settled.ts";
import { createBatcher } from "../batching/batcher.ts";
import type { TenantLimiter } from "../batching/tenant-limiter.ts";
import type { Pool, Statement } from "../pool.ts";
import { byKey } from "./by-key.ts";
import { type Readings, recordsOf } from "./read-records.ts";
import { APPLIED_COLUMNS, type RecordRow } from "./record-row.ts";

/** What an operation saw: what it made of its record, or what stood there instead. */
export type Seen<Made = LiveRecord> =
  | { readonly applied: true; readonly record: Made }
  /** Undefined: there is no record. */
  | { readonly applied: false; readonly record: LiveRecord | undefined };

/** How a statement ends whose `applied` holds the rows that it changed. */
export const APPLIED = `
select ${APPLIED_COLUMNS} from applied r`;

/** The row `r` of input `i`, if the token still names its claim and nothing has settled it, lease or no lease. */
export const UNFINISHED_BY_TOKEN = `
     ${byKey()}
     and r.fencing_token = i.fencing_token
     and r.state = 1
     and r.expires_at > now()`;

/** One kind of operation that changes records, batched. */
export interface AttemptOptions<Op, Row, Made> {
  readonly statement: Statement;
  /** The statement's parameters: one array a column. */
  readonly columns: (ops: readonly Op[]) => readonly Buffer[];
  /** What each operation made of its record, from the statement's rows; undefined: it left it alone. */
  readonly readMade: (rows: readonly Row[], ops: readonly Op[]) => readonly (Made | undefined)[];
  /** Tries an operation for which nobody else would share a statement, by one of its own. */
  readonly alone?: (op: Op) => Promise<Made | undefined>;
  readonly bytesOf?: (op: Op) => number;
  /** What an operation meets that arrives with another on its key, from what that one made; undefined: it goes later. */
  readonly meet?: (made: Made) => LiveRecord;
  readonly maxInFlight: number;
  readonly limiter: TenantLimiter;
}

/** Tries operations of one kind, each once, and reads the records of those that changed nothing. */
export type Attempts<Op, Made> = (
  ops: readonly Op[],
  deadline: Deadline,
) => Promise<readonly Settled<Seen<Made>>[]>;

/**
 * Gathers operations of one kind from all callers into statements. A statement tells only what it changed, because nearly all
 * of them change all that they are asked to; what stood in the way of the others is read after it.
 */
export function createAttempts<
  Op extends { readonly id: RecordId },
  Row extends pg.QueryResultRow,
  Made = LiveRecord,
>(pool: Pool, readings: Readings, options: AttemptOptions<Op, Row, Made>): Attempts<Op, Made> {
  const { statement, columns, readMade, alone, bytesOf, meet, maxInFlight, limiter } = options;
  const tries = createBatcher<Op, Seen<Made> | undefined>({
    nameOf: (op) => recordName(op.id),
    tenantOf: (op) => op.id.tenantId,
    limiter,
    maxInFlight,
    ...(bytesOf && { bytesOf }),
    ...(meet && { follow: (seen) => (seen?.applied ? { applied: false, record: meet(seen.record) } : seen) }),
    async execute(ops) {
      const [only] = ops;
      const made =
        only !== undefined && ops.length === 1 && alone !== undefined
          ? [await alone(only)]
          : readMade(await pool.run<Row>(statement, columns(ops), ops.length), ops);
      return made.map((record) => (record === undefined ? undefined : { applied: true, record }));
    },
  });
  return async (ops, deadline) => {
    const tried = await tries.submitAll(ops, deadline);
    const left = placesOf(tried, (seen) => seen === undefined);
    if (left.length === 0) return tried as readonly Settled<Seen<Made>>[];
    const met = mapSettled(
      await readings.submitAll(
        left.map((place) => (ops[place] as Op).id),
        deadline,
      ),
      (record): Seen<Made> => ({ applied: false, record }),
    );
    return replaced(tried, left, met) as readonly Settled<Seen<Made>>[];
  };
}

/** Reads the rows of APPLIED. */
export function readApplied(
  rows: readonly RecordRow[],
  ops: readonly { readonly id: RecordId }[],
): readonly (LiveRecord | undefined)[] {
  return recordsOf(
    ops.map(({ id }) => id),
    rows,
  );
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
 *
 * @param again is how those are tried whose record could have been had as seen.
 */
export async function attemptAll<Op, Outcome extends { readonly kind: string }, Made>(
  attempts: Attempts<Op, Made>,
  ops: readonly Op[],
  deadline: Deadline,
  answer: (seen: Seen<Made>, op: Op) => Outcome | Contended,
  again: Attempts<Op, Made> = attempts,
  looks = MAX_LOOKS,
): Promise<readonly Settled<Exclude<Outcome, Contended>>[]> {
  const seen = await attempts(ops, deadline);
  const settled = mapSettled(seen, (each, place) => answer(each, ops[place] as Op));
  const contended = placesOf(settled, (each) => !(each instanceof Rejected) && each.kind === "contended");
  if (contended.length === 0) return settled as Settled<Exclude<Outcome, Contended>>[];
  const rest = contended.map((place) => ops[place] as Op);
  const lookedAgain =
    looks === 1
      ? rest.map(() => new Rejected(tooContended()))
      : await attemptAll(again, rest, deadline, answer, again, looks - 1);
  return replaced(settled, contended, lookedAgain) as Settled<Exclude<Outcome, Contended>>[];
}

function placesOf<Item>(items: readonly Item[], is: (item: Item) => boolean): number[] {
  const places: number[] = [];
  items.forEach((item, place) => {
    if (is(item)) places.push(place);
  });
  return places;
}

/** The items, with others in some places. */
function replaced<Item>(items: readonly Item[], places: readonly number[], others: readonly Item[]): Item[] {
  const all = [...items];
  places.forEach((place, i) => {
    all[place] = others[i] as Item;
  });
  return all;
}

function tooContended(): Refusal {
  return new Refusal("RECORD_CONTENDED", "The key changed hands too often while this call looked.", {
    retryAfterMs: CONTENDED_RETRY_AFTER_MS,
  });
}
