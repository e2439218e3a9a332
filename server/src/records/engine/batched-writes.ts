import type pg from "pg";
import type { Runner, Statement } from "../../database/pool.ts";
import {
  type Deadline,
  indexesOf,
  mapSettled,
  Rejected,
  type Settled,
  withReplaced,
} from "../../domain/operation.ts";
import { Refusal } from "../../domain/refusal.ts";
import { type Contended, type LiveRecord, type RecordId, recordName } from "../record.ts";
import type { TenantLimiter } from "./fair-queue.ts";
import type { Readings } from "./read-records.ts";
import type { RecordValues } from "./record-values.ts";
import { createShardedBatcher, type RecordsDatabase } from "./sharded-batcher.ts";

/** What the operations that write records share. */
export interface WriteParts {
  readonly readings: Readings;
  readonly values: RecordValues;
  readonly limiter: TenantLimiter;
}

/** The outcome of a write: the written values, or the record that prevented it. */
export type WriteOutcome<Written = LiveRecord> =
  | { readonly applied: true; readonly record: Written }
  | {
      readonly applied: false;
      /** Undefined: there is no record. */
      readonly record: LiveRecord | undefined;
      /** As BatchedWriteOptions.decidedAtMs. */
      readonly decidedAtMs: number | undefined;
    };

/** Nothing was written, and the record that prevented it is not read yet. */
type NotWritten = { readonly applied: undefined; readonly decidedAtMs: number | undefined };

/** What a statement did for an operation. */
type Attempt<Written> = WriteOutcome<Written> | NotWritten;

/** One kind of operation that writes records. */
export interface BatchedWriteOptions<Op, Row, Written> {
  readonly statement: Statement;
  /** Returns the statement's parameters: one array per column. */
  readonly parametersOf: (ops: readonly Op[]) => readonly unknown[];
  /** Returns what each operation wrote, from the statement's rows; undefined if it wrote nothing. */
  readonly readWritten: (rows: readonly Row[], ops: readonly Op[]) => readonly Settled<Written | undefined>[];
  /** Returns the database's clock at the statement's start, by which it decided; unset: the clock decided nothing. */
  readonly decidedAtMs?: (rows: readonly Row[]) => number | undefined;
  /** Writes a single operation by a separate statement. Unset, or undefined: `statement` writes it. */
  readonly writeOne?: (op: Op, run: Runner["run"]) => Promise<Written | undefined> | undefined;
  readonly bytesOf?: (op: Op) => number;
  /**
   * Returns the record that a duplicate finds: an operation on the same key that was queued behind the one
   * that wrote it. Unset: duplicates wait for a later statement.
   */
  readonly recordForDuplicate?: (written: Written) => LiveRecord;
  readonly maxInFlight: number;
  readonly limiter: TenantLimiter;
}

/** Writes operations of one kind, each once, and reads the records of those that wrote nothing. */
export type BatchedWrite<Op, Written> = (
  ops: readonly Op[],
  deadline: Deadline,
) => Promise<readonly Settled<WriteOutcome<Written>>[]>;

/**
 * Gathers operations of one kind from all callers into statements. A statement returns only what it wrote,
 * because nearly all operations write; the records of the others are read after it.
 */
export function createBatchedWrite<
  Op extends { readonly id: RecordId },
  Row extends pg.QueryResultRow,
  Written = LiveRecord,
>(
  database: RecordsDatabase,
  readings: Readings,
  options: BatchedWriteOptions<Op, Row, Written>,
): BatchedWrite<Op, Written> {
  const { statement, parametersOf, readWritten, decidedAtMs, writeOne, recordForDuplicate, ...gathered } =
    options;
  const writes = createShardedBatcher<Op, Attempt<Written>>(database, {
    statement: statement.name,
    keyOf: (op) => op.id.key,
    nameOf: (op) => recordName(op.id),
    tenantOf: (op) => op.id.tenantId,
    ...gathered,
    ...(recordForDuplicate && {
      rowForDuplicate: (outcome) =>
        outcome.applied
          ? { applied: false, record: recordForDuplicate(outcome.record), decidedAtMs: undefined }
          : outcome,
    }),
    async execute(run, ops) {
      const [only] = ops;
      const one = only !== undefined && ops.length === 1 ? writeOne?.(only, run) : undefined;
      if (one !== undefined) return attempts([await one], undefined);
      const rows = await run<Row>(statement, parametersOf(ops), ops.length);
      return attempts(readWritten(rows, ops), decidedAtMs?.(rows));
    },
  });
  return async (ops, deadline) => {
    const outcomes = await writes.submitAll(ops, deadline);
    const notWritten = indexesOf(outcomes, isNotWritten);
    if (notWritten.length === 0) return outcomes as readonly Settled<WriteOutcome<Written>>[];
    const found = mapSettled(
      await readings.submitAll(
        notWritten.map((index) => (ops[index] as Op).id),
        deadline,
      ),
      (record, i): WriteOutcome<Written> => {
        const { decidedAtMs } = outcomes[notWritten[i] as number] as NotWritten;
        return { applied: false, record, decidedAtMs };
      },
    );
    return withReplaced(outcomes, notWritten, found) as readonly Settled<WriteOutcome<Written>>[];
  };
}

function attempts<Written>(
  written: readonly Settled<Written | undefined>[],
  decidedAtMs: number | undefined,
): readonly Settled<Attempt<Written>>[] {
  return mapSettled(
    written,
    (record): Attempt<Written> =>
      record === undefined ? { applied: undefined, decidedAtMs } : { applied: true, record },
  );
}

function isNotWritten(attempt: Settled<Attempt<unknown>>): boolean {
  return !(attempt instanceof Rejected) && attempt.applied === undefined;
}

/**
 * Maximum attempts at a write that found a record that it could have written. Each attempt is a new statement
 * with a new snapshot. Only a key that changes hands more often than once a millisecond is contended at each
 * of them.
 */
const MAX_ATTEMPTS = 8;
const CONTENDED_RETRY_AFTER_MS = 50;

/**
 * Writes operations until each has an outcome: the answer, the error that `answer` throws, or
 * RECORD_CONTENDED after MAX_ATTEMPTS.
 *
 * @param answer returns an operation's answer, or `contended` if the record that it found could have been
 *   written.
 * @param retry writes the operations that were contended.
 */
export async function writeAll<Op, Answer extends { readonly kind: string }, Written>(
  write: BatchedWrite<Op, Written>,
  ops: readonly Op[],
  deadline: Deadline,
  answer: (outcome: WriteOutcome<Written>, op: Op) => Answer | Contended,
  retry: BatchedWrite<Op, Written> = write,
  attempts = MAX_ATTEMPTS,
): Promise<readonly Settled<Exclude<Answer, Contended>>[]> {
  const outcomes = await write(ops, deadline);
  const settled = mapSettled(outcomes, (outcome, index) => answer(outcome, ops[index] as Op));
  const contended = indexesOf(settled, (each) => !(each instanceof Rejected) && each.kind === "contended");
  if (contended.length === 0) return settled as Settled<Exclude<Answer, Contended>>[];
  const rest = contended.map((index) => ops[index] as Op);
  const retried =
    attempts === 1
      ? rest.map(() => new Rejected(tooContended()))
      : await writeAll(retry, rest, deadline, answer, retry, attempts - 1);
  return withReplaced(settled, contended, retried) as Settled<Exclude<Answer, Contended>>[];
}

function tooContended(): Refusal {
  return new Refusal("RECORD_CONTENDED", "The key changed hands at each of several attempts.", {
    retryAfterMs: CONTENDED_RETRY_AFTER_MS,
  });
}
