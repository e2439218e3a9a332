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
  readonly isDue: boolean;
  /** What happened, in words of the page. */
  readonly what: string;
  /** The attempt of which it is a part; undefined: of the record. */
  readonly attempt: number | undefined;
  /** The owner of a claim; "": it named none; undefined: no claim. */
  readonly owner: string | undefined;
  /** How long the attempt held the claim, in milliseconds; undefined: it holds it, or the event is not an ending. */
  readonly heldMs: number | undefined;
  /** The last checkpoint when an attempt ended, or so far. */
  readonly checkpoint: string;
  /** Of a release or a resolution. */
  readonly reason: string;
  /** The job that resolved the record; undefined: none. */
  readonly job: bigint | undefined;
  /** Who called, and in which request; undefined: no call that was declined. */
  readonly call: Pick<DeclinedCall, "actor" | "requestId"> | undefined;
}

type EventParts = Pick<TimelineEvent, "at" | "tone" | "what"> & Partial<TimelineEvent>;

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
      return [eventOf(`call ${index}`, { ...words, at, call: { actor, requestId } })];
    }),
  );
}

const DECLINED: Readonly<globalThis.Record<number, { readonly tone: StateTone; readonly what: string }>> = {
  [DeclinedCall_Outcome.REPLAYED]: { tone: "good", what: "Duplicate got the result" },
  [DeclinedCall_Outcome.IN_PROGRESS]: { tone: "quiet", what: "Duplicate, while another caller held the key" },
  [DeclinedCall_Outcome.AMBIGUOUS]: { tone: "attention", what: "Duplicate, while nobody knew the outcome" },
  [DeclinedCall_Outcome.MISMATCHED]: { tone: "bad", what: "Refused: a different request with this key" },
  [DeclinedCall_Outcome.TOO_OLD]: { tone: "bad", what: "Refused: the key is too old" },
  [DeclinedCall_Outcome.OVER_QUOTA]: { tone: "bad", what: "Refused: beyond a limit of the tenant" },
  [DeclinedCall_Outcome.SUPERSEDED]: { tone: "bad", what: "Refused: a late worker had lost the key" },
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
  [Attempt_Ending.RESOLVED]: { tone: "good", what: "Resolved by an administrator" },
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
  const claimed = eventOf(`claim ${number}`, {
    ...{ at: claimedAt, tone: "busy", what: "Claimed", attempt: number, owner },
    checkpoint: endedAt === undefined ? checkpoint : "",
  });
  const end = ENDINGS[ending];
  if (endedAt === undefined || end === undefined) return [claimed];
  const ended = {
    ...end,
    at: endedAt,
    attempt: number,
    reason,
    job: recordJob === 0n ? undefined : recordJob,
  };
  const last = { heldMs: timeBetween(claimedAt, leaseEnd ?? endedAt), checkpoint };
  if (leaseEnd === undefined) return [claimed, eventOf(`end ${number}`, { ...ended, ...last })];
  const lease = {
    at: leaseEnd,
    tone: "attention",
    what: "Lease ended without an answer",
    attempt: number,
  } as const;
  return [claimed, eventOf("lease", { ...lease, ...last }), eventOf(`end ${number}`, ended)];
}

function timeBetween(from: Timestamp, to: Timestamp): number {
  return Math.max(0, timestampMs(to) - timestampMs(from));
}

function leaseEvents(record: Record, attempts: readonly Attempt[]): readonly TimelineEvent[] {
  const { state, leaseExpiresAt: at } = record;
  const attempt = attempts.at(-1)?.number;
  if (at === undefined) return [];
  switch (state) {
    case Record_State.AMBIGUOUS: {
      const what = "Lease ended: ambiguous until a person decides";
      return [dueOf("lease", { at, tone: "attention", what, attempt })];
    }
    case Record_State.IN_PROGRESS: {
      const what = "Lease ends, unless the holder extends it";
      return [dueOf("lease", { at, tone: "quiet", what, attempt })];
    }
    default:
      return [];
  }
}

function retentionEvents({ resultExpiresAt, expiresAt }: Record): readonly TimelineEvent[] {
  return [
    resultExpiresAt && dueOf("result", { at: resultExpiresAt, tone: "quiet", what: "Result is removed" }),
    expiresAt &&
      dueOf("record", {
        at: expiresAt,
        tone: "quiet",
        what: "Key is forgotten: a duplicate is a new operation",
      }),
  ].filter((event) => event !== undefined);
}

function eventOf(id: string, parts: EventParts): TimelineEvent {
  const none = {
    isDue: false,
    attempt: undefined,
    owner: undefined,
    heldMs: undefined,
    checkpoint: "",
    reason: "",
    job: undefined,
    call: undefined,
  };
  return { ...none, ...parts, id };
}

function dueOf(id: string, parts: EventParts): TimelineEvent {
  return eventOf(id, { ...parts, isDue: true });
}
