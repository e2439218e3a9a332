import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type Attempt,
  Attempt_Ending,
  type Record,
  Record_State,
} from "@onceward/gen/onceward/v1/record_pb.ts";
import { type DeclinedCall, DeclinedCall_Outcome } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { StateTone } from "../../parts/state-mark.tsx";

/** Something that happened to a record, or that will. */
export interface TimelineEvent {
  readonly id: string;
  readonly at: Timestamp;
  readonly tone: StateTone;
  /** The end of a lease or of retention, which can lie in the future. */
  readonly isDue?: true;
  /** What happened, in words of the page. */
  readonly what: string;
  /** The attempt of which it is a part; undefined: of the record. */
  readonly attempt?: number | undefined;
  /** The owner of a claim; "": it named none; undefined: no claim. */
  readonly owner?: string;
  /** How long the attempt held the claim, in milliseconds; undefined: it holds it, or the event is not an ending. */
  readonly heldMs?: number;
  /** The last checkpoint when an attempt ended, or so far. */
  readonly checkpoint?: string;
  /** Of a release or a resolution. */
  readonly reason?: string;
  /** The job that resolved the record; undefined: none. */
  readonly job?: bigint | undefined;
  /** Who called, and in which request; undefined: no call that was declined. */
  readonly call?: Pick<DeclinedCall, "actor" | "requestId">;
}

/**
 * Returns a record's history and future, oldest first: a claim and an ending of each attempt, the end of a lease
 * without an ending, calls on its key that were declined, and the ends of retention. At most 44 events, because the server keeps
 * 16 attempts and 8 calls.
 */
export function timelineOf(
  record: Record,
  attempts: readonly Attempt[],
  declined: readonly DeclinedCall[] = [],
): readonly TimelineEvent[] {
  const events = [
    ...attempts.slice(0, -1).flatMap((attempt) => eventsOf(attempt, undefined)),
    ...attempts.slice(-1).flatMap((attempt) => eventsOf(attempt, leaseEndOf(attempt, record))),
    ...leaseEvents(record, attempts),
    ...declinedEvents(declined),
    ...retentionEvents(record),
  ];
  return sorted(events);
}

/** Returns the calls on a key that were declined, oldest first. */
export function declinedEvents(calls: readonly DeclinedCall[]): readonly TimelineEvent[] {
  return sorted(
    calls.flatMap(({ at, outcome, actor, requestId }, index) => {
      const words = DECLINED[outcome];
      if (at === undefined || words === undefined) return [];
      return [{ id: `call ${index}`, ...words, at, call: { actor, requestId } }];
    }),
  );
}

const DECLINED: Readonly<globalThis.Record<number, { readonly tone: StateTone; readonly what: string }>> = {
  [DeclinedCall_Outcome.REPLAYED]: { tone: "good", what: "Duplicate got the result" },
  [DeclinedCall_Outcome.IN_PROGRESS]: { tone: "quiet", what: "Duplicate, while another caller held the key" },
  [DeclinedCall_Outcome.AMBIGUOUS]: { tone: "attention", what: "Duplicate, while no one knew the outcome" },
  [DeclinedCall_Outcome.MISMATCHED]: { tone: "bad", what: "Refused: a different request with this key" },
  [DeclinedCall_Outcome.TOO_OLD]: { tone: "bad", what: "Refused: the key is too old" },
  [DeclinedCall_Outcome.OVER_QUOTA]: { tone: "bad", what: "Refused: beyond a limit of the tenant" },
  [DeclinedCall_Outcome.SUPERSEDED]: { tone: "bad", what: "Refused: a late worker had lost the key" },
  [DeclinedCall_Outcome.UNREADABLE]: { tone: "bad", what: "Refused: the record cannot be decrypted" },
};

/** Events of the same instant stay in their order: an attempt's end comes before the next claim. */
function sorted(events: readonly TimelineEvent[]): readonly TimelineEvent[] {
  return events.toSorted((a, b) => timestampMs(a.at) - timestampMs(b.at));
}

/** Returns how many attempts were made before those that are kept. */
export function forgottenAttempts(attempts: readonly Attempt[]): number {
  return Math.max(0, (attempts[0]?.number ?? 1) - 1);
}

/** How an attempt that has ended ended. */
const ENDINGS: Readonly<globalThis.Record<number, { readonly tone: StateTone; readonly what: string }>> = {
  [Attempt_Ending.SUPERSEDED]: { tone: "attention", what: "Lost to the next claim, after its lease" },
  [Attempt_Ending.RELEASED]: { tone: "quiet", what: "Released by its holder" },
  [Attempt_Ending.COMPLETED]: { tone: "good", what: "Completed by its holder" },
  [Attempt_Ending.SETTLED]: { tone: "good", what: "Completed by its holder: an unknown outcome is settled" },
  [Attempt_Ending.RESOLVED]: { tone: "good", what: "Resolved by an administrator" },
  [Attempt_Ending.GIVEN_BACK]: { tone: "quiet", what: "Given back: it found out nothing" },
};

/** Returns when the newest attempt's lease had ended before an administrator resolved it; undefined: it had not. */
function leaseEndOf({ endedAt, ending }: Attempt, { leaseExpiresAt }: Record): Timestamp | undefined {
  if (ending !== Attempt_Ending.RESOLVED || endedAt === undefined || leaseExpiresAt === undefined)
    return undefined;
  return timestampMs(leaseExpiresAt) <= timestampMs(endedAt) ? leaseExpiresAt : undefined;
}

function eventsOf(attempt: Attempt, leaseEnd: Timestamp | undefined): readonly TimelineEvent[] {
  const { number, owner, claimedAt, endedAt, ending, checkpoint, reason, recordJob } = attempt;
  if (claimedAt === undefined) return [];
  const claimed: TimelineEvent = {
    ...{ id: `claim ${number}`, at: claimedAt, tone: "busy", what: "Claimed", attempt: number, owner },
    checkpoint: endedAt === undefined ? checkpoint : "",
  };
  const end = ENDINGS[ending];
  if (endedAt === undefined || end === undefined) return [claimed];
  const job = recordJob === 0n ? undefined : recordJob;
  const ended = { id: `end ${number}`, ...end, at: endedAt, attempt: number, reason, job };
  const last = { heldMs: timeBetween(claimedAt, leaseEnd ?? endedAt), checkpoint };
  if (leaseEnd === undefined) return [claimed, { ...ended, ...last }];
  const what = "Lease ended without an answer";
  return [claimed, { id: "lease", at: leaseEnd, tone: "attention", what, attempt: number, ...last }, ended];
}

function timeBetween(from: Timestamp, to: Timestamp): number {
  return Math.max(0, timestampMs(to) - timestampMs(from));
}

function leaseEvents(record: Record, attempts: readonly Attempt[]): readonly TimelineEvent[] {
  const { state, leaseExpiresAt: at } = record;
  if (at === undefined) return [];
  const lease = { id: "lease", at, attempt: attempts.at(-1)?.number, isDue: true } as const;
  if (state === Record_State.AMBIGUOUS)
    return [{ ...lease, tone: "attention", what: "Lease ended: ambiguous until a person decides" }];
  if (state === Record_State.IN_PROGRESS)
    return [{ ...lease, tone: "quiet", what: "Lease ends, unless the holder extends it" }];
  return [];
}

function retentionEvents({ resultExpiresAt, expiresAt }: Record): readonly TimelineEvent[] {
  const due = { tone: "quiet", isDue: true } as const;
  const forgotten = "Key is forgotten: a duplicate is a new operation";
  return [
    ...(resultExpiresAt ? [{ ...due, id: "result", at: resultExpiresAt, what: "Result is removed" }] : []),
    ...(expiresAt ? [{ ...due, id: "record", at: expiresAt, what: forgotten }] : []),
  ];
}
