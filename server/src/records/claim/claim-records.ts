import type { Runner } from "../../database/pool.ts";
import { clockMoved, type DatabaseClock } from "../../domain/database-clock.ts";
import {
  type Deadline,
  indexesOf,
  mapSettled,
  Rejected,
  type Settled,
  settlePending,
  withReplaced,
} from "../../domain/operation.ts";
import {
  type BatchedWrite,
  createBatchedWrite,
  type WriteOutcome,
  type WriteParts,
  writeAll,
} from "../engine/batched-writes.ts";
import type { FillResult } from "../engine/large-results.ts";
import { type Readings, writtenRecords } from "../engine/read-records.ts";
import { NO_DIGEST } from "../engine/record-row.ts";
import type { RecordsDatabase } from "../engine/sharded-batcher.ts";
import { claimAfterLoss, type RecordLoss } from "../late-keys.ts";
import {
  addMs,
  answerClaim,
  beginsOperation,
  type ClaimCommand,
  type ClaimOutcome,
  claimed,
  completesItself,
  EMPTY_RESULT,
  type LiveRecord,
} from "../record.ts";
import { createRepeatMeter, namespaceOf } from "../replay/replay-cache.ts";
import { createReplyRoom, type ReplyRoom } from "../reply-room.ts";
import type { TokenFloor } from "../token-floor.ts";
import {
  claimArrays,
  claimParameters,
  claimRecord,
  claimRecords,
  type Grant,
  type GrantedRow,
  isTakenOver,
  type TakenOverRow,
  takeOverParameters,
  takeOverRecords,
} from "./claim-statements.ts";

/**
 * While one statement commits, another runs and a third is on its way. More would only make batches smaller.
 */
const MAX_IN_FLIGHT = 3;
const MAX_TAKE_OVERS_IN_FLIGHT = 1;
/**
 * The share of claims that found a record, among the recent ones of a namespace, from which records are read first. This saves a
 * claim that finds one a statement, and costs another claim one.
 */
const MOSTLY = 2 / 3;

interface ClaimParts extends WriteParts {
  readonly fillResult: FillResult;
  readonly databaseClock: Pick<DatabaseClock, "latestMs">;
  readonly tokenFloor: TokenFloor;
  readonly recordLoss: Readonly<RecordLoss>;
}

/**
 * Returns a function that claims records, batched over all its callers. Each claim settles separately, at the index
 * of its command; it is refused as `answerClaim` does.
 */
export function createClaimRecords(
  database: RecordsDatabase,
  { readings, fillResult, values, limiter, databaseClock, tokenFloor, recordLoss }: ClaimParts,
) {
  const afterLoss = (command: ClaimCommand) => claimAfterLoss(command, recordLoss.lastAtMs);
  const insert = createBatchedWrite<ClaimCommand, GrantedRow>(database, readings, {
    statement: claimRecords,
    parametersOf: (commands) => claimArrays(commands.map(afterLoss), tokenFloor.current()),
    writeOne: (command, run) =>
      command.acceptedUntilMs === undefined ? claimOne(command, run, tokenFloor) : undefined,
    readWritten([row], commands) {
      if (row === undefined) throw new Error("claim_records returned no row");
      tokenFloor.raise(row.granted.baseToken + commands.length);
      return readGranted(row, commands);
    },
    decidedAtMs: ([row]) => row?.granted.grantedAtMs,
    recordForDuplicate: (granted) => granted,
    maxInFlight: MAX_IN_FLIGHT,
    limiter,
  });
  const { write, count } = createReadOrInsert(insert, readings);
  const takeOver = createBatchedWrite<ClaimCommand, TakenOverRow>(database, readings, {
    statement: takeOverRecords,
    parametersOf: (commands) =>
      takeOverParameters(commands.map(afterLoss), tokenFloor.current(), databaseClock.latestMs()),
    readWritten(rows, commands) {
      const takenOver = rows.filter(isTakenOver);
      for (const { fencing_token } of takenOver) tokenFloor.raise(Number(fencing_token));
      return writtenRecords(takenOver, commands, values.openRow);
    },
    decidedAtMs: ([row]) => row?.now_ms,
    recordForDuplicate: (granted) => granted,
    maxInFlight: MAX_TAKE_OVERS_IN_FLIGHT,
    limiter,
  });
  return async (commands: readonly ClaimCommand[], deadline: Deadline) => {
    const outcomes = await writeAll(
      write,
      commands,
      deadline,
      (outcome, command) =>
        outcome.applied
          ? claimed(outcome.record, false)
          : answerUngranted(outcome, afterLoss(command), databaseClock.latestMs()),
      takeOver,
    );
    count(commands, outcomes);
    let room: ReplyRoom | undefined;
    return await settlePending(outcomes, (outcome) => {
      if (outcome.kind !== "completed" || outcome.record === undefined) return undefined;
      room ??= createReplyRoom();
      const filling = fillResult(outcome.record, deadline, room);
      return filling?.then((record) => {
        const result = record.phase.kind === "completed" ? record.phase.result : undefined;
        return { ...outcome, record, result };
      });
    });
  };
}

type Insert = BatchedWrite<ClaimCommand, LiveRecord>;

/**
 * Returns a write that inserts claims as `insert` does, but where most claims find a record, reads the records first and inserts only
 * claims without one; and `count`, which it learns from.
 */
function createReadOrInsert(insert: Insert, readings: Readings) {
  const meter = createRepeatMeter();

  const readFirst: Insert = async (commands, deadline) => {
    const ids = commands.map(({ id }) => id);
    const found = mapSettled(
      await readings.submitAll(ids, deadline),
      (record): WriteOutcome => ({ applied: false, record, decidedAtMs: undefined }),
    );
    const absent = indexesOf(found, (each) => !(each instanceof Rejected) && each.record === undefined);
    return withReplaced(found, absent, await insert(pick(commands, absent), deadline));
  };

  const write: Insert = async (commands, deadline) => {
    const isRepeat = ({ id }: ClaimCommand) => meter.repeatsOften(namespaceOf(id), MOSTLY);
    const repeats = indexesOf(commands, isRepeat);
    if (repeats.length === 0) return await insert(commands, deadline);
    const others = indexesOf(commands, (command) => !isRepeat(command));
    const [read, inserted] = await Promise.all([
      readFirst(pick(commands, repeats), deadline),
      insert(pick(commands, others), deadline),
    ]);
    return withReplaced(withReplaced(new Array(commands.length), repeats, read), others, inserted);
  };

  /** Counts which claims found a record. A refused one is not counted. */
  function count(commands: readonly ClaimCommand[], outcomes: readonly Settled<ClaimOutcome>[]): void {
    outcomes.forEach((outcome, index) => {
      if (outcome instanceof Rejected) return;
      meter.count(namespaceOf((commands[index] as ClaimCommand).id), !beginsOperation(outcome));
    });
  }

  return { write, count };
}

function pick(commands: readonly ClaimCommand[], indexes: readonly number[]): readonly ClaimCommand[] {
  return indexes.map((index) => commands[index] as ClaimCommand);
}

/** Claims one key that is not in use. */
async function claimOne(
  command: ClaimCommand,
  run: Runner["run"],
  tokenFloor: TokenFloor,
): Promise<LiveRecord | undefined> {
  const [grant] = await run<Grant>(claimRecord, claimParameters(command, tokenFloor.current()));
  if (grant === undefined) return undefined;
  tokenFloor.raise(grant.baseToken + 1);
  return newRecord(command, grant.baseToken + 1, grant);
}

/**
 * Returns the answer to a claim that was not granted.
 *
 * @param latestMs as DatabaseClock.
 * @throws Refusal as `answerClaim`; DATABASE_UNAVAILABLE if the key is too old only by a clock that was set.
 */
function answerUngranted(
  { record, decidedAtMs }: Extract<WriteOutcome, { applied: false }>,
  command: ClaimCommand,
  latestMs = Number.POSITIVE_INFINITY,
): ReturnType<typeof answerClaim> {
  const { acceptedUntilMs } = command;
  const isOldNow =
    acceptedUntilMs !== undefined && decidedAtMs !== undefined && decidedAtMs >= acceptedUntilMs;
  if (record === undefined && isOldNow && acceptedUntilMs > latestMs) throw clockMoved();
  return answerClaim(record, command, decidedAtMs);
}

/**
 * Returns the record that each command was granted, at its index; undefined for a command that was not
 * granted.
 */
function readGranted(
  { granted }: GrantedRow,
  commands: readonly ClaimCommand[],
): readonly (LiveRecord | undefined)[] {
  const { baseToken } = granted;
  if (granted.ordinals === null)
    return commands.map((command, index) => newRecord(command, baseToken + index + 1, granted));
  const records: (LiveRecord | undefined)[] = commands.map(() => undefined);
  for (const ordinal of granted.ordinals) {
    const command = commands[ordinal - 1];
    if (command === undefined) throw new Error(`claim_records granted an unknown command, ${ordinal}`);
    records[ordinal - 1] = newRecord(command, baseToken + ordinal, granted);
  }
  return records;
}

/** Returns the record that a statement inserted for a command. */
function newRecord(
  command: ClaimCommand,
  fencingToken: number,
  { grantedAtMs, answeredAtMs }: Grant,
): LiveRecord {
  const { id, claimId, owner, fingerprint, leaseMs, keyRetentionS } = command;
  const leaseExpiresAtMs = addMs(grantedAtMs, leaseMs);
  const expiresAtMs = addMs(grantedAtMs, Math.max(keyRetentionS * 1000, leaseMs));
  return {
    id,
    phase: completesItself(command)
      ? {
          kind: "completed",
          completedAtMs: grantedAtMs,
          result: EMPTY_RESULT,
          resultDigest: NO_DIGEST,
          resultExpiresAtMs: expiresAtMs,
        }
      : { kind: "inProgress" },
    fencingToken: BigInt(fencingToken),
    attempt: 1,
    claimId,
    owner,
    fingerprint,
    firstClaimedAtMs: grantedAtMs,
    claimedAtMs: grantedAtMs,
    leaseExpiresAtMs,
    leaseRemainingMs: leaseExpiresAtMs - answeredAtMs,
    expiresAtMs,
    checkpoint: undefined,
  };
}
