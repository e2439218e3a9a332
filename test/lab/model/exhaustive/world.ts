import { Refusal } from "../../../../server/src/domain/refusal.ts";
import { answerComplete } from "../../../../server/src/records/complete.ts";
import { answerExtendLease } from "../../../../server/src/records/extend-lease.ts";
import { answerClaim } from "../../../../server/src/records/record.ts";
import { answerRelease } from "../../../../server/src/records/release.ts";
import {
  bytesOf,
  type Claim,
  commandOf,
  FENCING_MARGIN,
  heldFrom,
  insertedRow,
  isSettledBy,
  LEASE,
  RETENTION,
  type Row,
  recordOf,
  takenOverRow,
} from "./rows.ts";

/** A caller, with the claim that it holds and the call that it makes. */
export interface Caller {
  readonly held: { readonly key: number; readonly token: number } | undefined;
  readonly call: { readonly claim: Claim; readonly next: "read" | "takeOver" } | undefined;
}

/** A state of the small scope. */
export interface World {
  readonly now: number;
  /** As Row. */
  readonly reclaimWithin: number;
  readonly rows: readonly (Row | undefined)[];
  readonly callers: readonly Caller[];
  /** The highest token that each key's claims had. */
  readonly tokens: readonly number[];
  readonly crashesLeft: number;
}

/** A step from a state, in words, with the state after it. */
export interface Step {
  readonly words: string;
  readonly after: World;
}

/** Thrown by a step whose answer contradicts the protocol. */
export class Contradiction extends Error {}

export function newWorld(keys: number, callers: number, crashes: number, reclaimWithin: number): World {
  return {
    now: 0,
    reclaimWithin,
    rows: Array.from({ length: keys }, () => undefined),
    callers: Array.from({ length: callers }, () => ({ held: undefined, call: undefined })),
    tokens: Array.from({ length: keys }, () => 0),
    crashesLeft: crashes,
  };
}

/** Returns every step that is possible in a state. @throws Contradiction */
export function* stepsFrom(world: World): Generator<Step> {
  for (const [index, caller] of world.callers.entries()) yield* stepsOf(world, index, caller);
  for (const key of world.rows.keys()) yield* stepsOn(world, key);
  yield { words: "a minute passes", after: { ...world, now: world.now + 1 } };
}

function* stepsOf(world: World, index: number, caller: Caller): Generator<Step> {
  const name = `caller ${index}`;
  if (world.crashesLeft > 0 && (caller.held ?? caller.call) !== undefined) {
    const crashed = withCaller(world, index, { held: undefined, call: undefined });
    yield { words: `${name} crashes`, after: { ...crashed, crashesLeft: world.crashesLeft - 1 } };
  }
  if (caller.call !== undefined) {
    yield { words: `${name}: ${caller.call.next}`, after: nextStatement(world, index, caller, caller.call) };
    return;
  }
  for (const key of world.rows.keys()) {
    for (const fingerprint of [1, 2]) {
      for (const acceptsAmbiguous of Number.isFinite(world.reclaimWithin) ? [false, true] : [false]) {
        const claim = { key, fingerprint, acceptsAmbiguous };
        yield {
          words: `${name} claims ${JSON.stringify(claim)}`,
          after: insert(world, index, caller, claim),
        };
      }
    }
  }
  if (caller.held === undefined) return;
  for (const kind of ["complete 1", "complete 2", "release", "extend"] as const) {
    yield { words: `${name}: ${kind}`, after: settle(world, caller.held, kind) };
  }
}

/** What an administrator and the sweep do to a row. */
function* stepsOn(world: World, key: number): Generator<Step> {
  const row = world.rows[key];
  if (row === undefined) return;
  if (row.state !== "forgotten" && row.ends > world.now) {
    const forgotten: Row = { ...row, state: "forgotten", ends: world.now };
    yield { words: `key ${key} is forgotten`, after: withRow(world, key, forgotten) };
  }
  if (row.ends <= world.now - FENCING_MARGIN)
    yield { words: `key ${key} is swept`, after: withRow(world, key, undefined) };
}

/** A token is the time with the claim's ordinal, as the statements draw it. */
const baseOf = (world: World) => world.now * 100 + 1;

function insert(world: World, index: number, caller: Caller, claim: Claim): World {
  if (world.rows[claim.key] !== undefined)
    return withCaller(world, index, { ...caller, call: { claim, next: "read" } });
  return grant(world, index, claim, insertedRow(claim, baseOf(world), world.reclaimWithin, world.now));
}

function nextStatement(
  world: World,
  index: number,
  caller: Caller,
  call: NonNullable<Caller["call"]>,
): World {
  const { claim, next } = call;
  const row = world.rows[claim.key];
  const taken =
    row === undefined
      ? insertedRow(claim, baseOf(world), world.reclaimWithin, world.now)
      : takenOverRow(row, claim, baseOf(world), world.now);
  if (next === "takeOver") {
    if (taken === undefined) return withCaller(world, index, { ...caller, call: { claim, next: "read" } });
    return grant(world, index, claim, taken);
  }
  const isContended =
    answerOf(() => answerClaim(recordOf(row, claim.key, world.now), commandOf(claim))) === "contended";
  if (isContended !== (taken !== undefined))
    throw new Contradiction(
      isContended ? "a claim is retried in vain" : "a claim is refused that could be granted",
    );
  return withCaller(world, index, { ...caller, call: isContended ? { claim, next: "takeOver" } : undefined });
}

function grant(world: World, index: number, claim: Claim, row: Row): World {
  const { key } = claim;
  const before = world.rows[key];
  if (row.token <= (world.tokens[key] as number)) throw new Contradiction("2: a token falls");
  const lives = before !== undefined && before.state !== "forgotten" && before.ends > world.now;
  if (lives && before.state === "completed") throw new Contradiction("4: a completed key is claimed");
  if (lives && before.state === "inProgress" && before.leaseEnds > world.now)
    throw new Contradiction("1: two claims are live");
  if (lives && before.state === "inProgress" && heldFrom(before) <= world.now && !claim.acceptsAmbiguous)
    throw new Contradiction("21: a held key is claimed");
  if (lives && before.fingerprint !== 0 && before.fingerprint !== claim.fingerprint)
    throw new Contradiction("5: another fingerprint gets the claim");
  const granted = withCaller(withRow(world, key, row), index, {
    held: { key, token: row.token },
    call: undefined,
  });
  return { ...granted, tokens: world.tokens.with(key, row.token) };
}

function settle(
  world: World,
  { key, token }: NonNullable<Caller["held"]>,
  kind: "complete 1" | "complete 2" | "release" | "extend",
): World {
  const row = world.rows[key];
  const { now } = world;
  if (row !== undefined && isSettledBy(row, token, now)) {
    if (token !== world.tokens[key]) throw new Contradiction("4: a superseded token settles");
    switch (kind) {
      case "complete 1":
      case "complete 2":
        return withRow(world, key, {
          ...row,
          state: "completed",
          ends: now + RETENTION,
          result: resultOf(kind),
        });
      case "release":
        return withRow(world, key, { ...row, state: "released" });
      case "extend": {
        const leaseEnds = Math.max(row.leaseEnds, now + LEASE);
        return withRow(world, key, { ...row, leaseEnds, ends: Math.max(row.ends, leaseEnds) });
      }
      default:
        return kind satisfies never;
    }
  }
  const answer = answerOf(() => answerSettlement(row, key, token, kind, now));
  if (answer === "contended") throw new Contradiction(`${kind} is retried in vain`);
  const isRepeat = answer === "completed" || answer === "released";
  if (isRepeat && (row?.token !== token || row.state !== answer))
    throw new Contradiction(`4: ${kind} is confirmed, and was not done`);
  return world;
}

const resultOf = (kind: "complete 1" | "complete 2") => (kind === "complete 1" ? 1 : 2);

function answerSettlement(row: Row | undefined, key: number, token: number, kind: string, now: number) {
  const record = recordOf(row, key, now);
  const named = {
    id: commandOf({ key, fingerprint: 0, acceptsAmbiguous: false }).id,
    fencingToken: BigInt(token),
  };
  if (kind === "release") return answerRelease(record, { ...named, reason: "", giveBack: false }, false);
  if (kind === "extend")
    return answerExtendLease(record, { ...named, leaseMs: undefined, checkpoint: undefined, begin: false });
  const payload = bytesOf(resultOf(kind as "complete 1"));
  const result = { kind: "success", payload, contentType: "", metadataJson: "" } as const;
  return answerComplete(record, { ...named, result, resultDigest: payload, keyRetentionS: undefined });
}

/** Returns the kind of an answer, or the reason of the refusal. */
function answerOf(answer: () => { readonly kind: string }): string {
  try {
    return answer().kind;
  } catch (error) {
    if (error instanceof Refusal) return error.reason;
    throw error;
  }
}

function withRow(world: World, key: number, row: Row | undefined): World {
  return { ...world, rows: world.rows.with(key, row) };
}

function withCaller(world: World, index: number, caller: Caller): World {
  return { ...world, callers: world.callers.with(index, caller) };
}
