import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { ClaimResponse } from "../../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { failure, fingerprintOf, seconds, success } from "../../../support/calls/verbs.ts";
import type { Random } from "../../../support/random.ts";
import { marked } from "../../history/messages.ts";
import type { Calls } from "./calls.ts";
import { MARKED, type Target } from "./spaces.ts";

/** The effects; `open` and `charge` resolve once the effect has been counted. */
export interface Outside {
  open(target: Target, token: number): Promise<string>;
  charge(target: Target, token: number): Promise<string>;
  /** Whether the key was charged by any token: "charged" or not. */
  look(target: Target): Promise<string>;
}

/** A claim of this client, which may have been superseded since. */
export interface Held {
  readonly target: Target;
  readonly token: bigint;
  /** Undefined: it has no effect. */
  readonly result: ReturnType<typeof success> | undefined;
}

/** The sessions of a worker. */
export interface Sessions {
  /** Claims, and does what a holder does if it is granted. */
  claimOnce(target: Target): Promise<void>;
  /** Charges, and completes until an answer arrives. */
  settle(target: Target, token: bigint): Promise<void>;
  /** Settles or extends late, with a token that may have been superseded. */
  actLate(): Promise<void>;
  lookUp(target: Target): Promise<void>;
  /** Returns, once, a key whose holder of this client crashed, before its effect or after. */
  nextCrashed(): Target | undefined;
}

const LEASE_MS = 1000;
/** Attempts of a call whose answer is lost, with the same claim id or result. */
const TRIES = 3;
const REMEMBERED = 50;

/** @see Sessions */
export function createSessions(calls: Calls, outside: Outside, random: Random, client: string): Sessions {
  const held: Held[] = [];
  const crashed: Target[] = [];
  const chance = (share: number) => random.next() < share;
  const remember = <Each>(list: Each[], each: Each) => {
    list.push(each);
    if (list.length > REMEMBERED) list.shift();
  };

  async function claim(target: Target): Promise<ClaimResponse | undefined> {
    const { namespace, key } = target;
    const waitMs = chance(0.15) ? 100 + random.below(900) : 0;
    const print = random.next();
    const request = {
      namespace,
      key,
      claimId: randomUUID(),
      owner: marked(target.tenant, client),
      ...(print < 0.8 && { fingerprint: fingerprintOf(print < 0.72 ? key : `not ${key}`) }),
      ...(waitMs > 0 && { wait: seconds(waitMs / 1000) }),
      ...(chance(0.04) ? { completion: {} } : chance(0.1) && { lease: seconds(2) }),
      ...(chance(0.2) && { acceptAmbiguous: true }),
      ...(namespace === MARKED && chance(0.6) && { marksBegin: true }),
    };
    for (let attempt = 0; attempt < TRIES; attempt++) {
      const reply = await calls.tell([target], (api, options) => api.claim(request, options), waitMs + 2500);
      if (reply !== undefined) return reply;
      if (calls.isWornOut(target) || chance(0.5)) return undefined;
    }
    return undefined;
  }

  async function settle(target: Target, token: bigint): Promise<void> {
    const marks = target.namespace === MARKED;
    // Without an answer, the effect may not begin.
    if (marks && !(await extend(target, token, { begin: true }))) return;
    const result = success(marked(target.tenant, `${target.namespace}/${target.key} by ${client} #${token}`));
    remember(held, { target, token, result });
    await haveEffect(target, Number(token));
    if (chance(marks ? 0.25 : 0.1)) return remember(crashed, target);
    await complete(target, token, result);
    if (chance(0.06)) await complete(target, token, chance(0.5) ? result : success("another"));
  }

  async function haveEffect(target: Target, token: number): Promise<void> {
    const opened = target.fenced ? await outside.open(target, token) : "open";
    if (opened === "open") await outside.charge(target, token);
  }

  async function complete(target: Target, token: bigint, result: ReturnType<typeof success>): Promise<void> {
    const { namespace, key } = target;
    const request = { namespace, key, fencingToken: token, result };
    for (let attempt = 0; attempt < TRIES; attempt++) {
      const reply = await calls.tell([target], (api, options) => api.complete(request, options));
      if (reply !== undefined || calls.isWornOut(target)) return;
      // `tell` returns undefined for a refusal too; a repeat of it gets the same refusal.
      if (attempt === 0 && chance(0.5)) return;
    }
  }

  async function giveUp(target: Target, token: bigint): Promise<void> {
    const id = { namespace: target.namespace, key: target.key, fencingToken: token };
    remember(held, { target, token, result: undefined });
    await calls.tell([target], (api, options) => api.release({ ...id, reason: "not now" }, options));
  }

  /** Returns whether the lease was extended, as far as an answer says so. */
  async function extend(target: Target, token: bigint, more = {}): Promise<boolean> {
    const id = { namespace: target.namespace, key: target.key, fencingToken: token };
    const checkpoint = chance(0.3) ? { checkpoint: { name: "half" } } : {};
    const request = { ...id, ...checkpoint, ...more };
    return (await calls.tell([target], (api, options) => api.extendLease(request, options))) !== undefined;
  }

  /** Does what a holder may do: settle, release, extend, crash, or come too late. */
  async function work(target: Target, token: bigint): Promise<void> {
    const draw = random.next();
    if (draw < 0.12) return giveUp(target, token);
    if (draw < 0.2) return remember(crashed, target);
    if (draw < 0.27) {
      const declined = failure(marked(target.tenant, `declined #${token}`));
      return complete(target, token, declined);
    }
    if (draw < 0.37) {
      await pause(0.7 * LEASE_MS);
      await extend(target, token);
      await pause(random.below(LEASE_MS));
    } else if (draw < 0.45) {
      // Longer than its lease: another claim may be granted in between.
      await pause(LEASE_MS + random.below(LEASE_MS));
    } else await pause(random.below(25));
    return settle(target, token);
  }

  return {
    settle,
    nextCrashed: () => crashed.splice(0, 1).find((target) => !calls.isWornOut(target)),
    async claimOnce(target) {
      const reply = await claim(target);
      if (reply?.outcome.case === "claimed") await work(target, reply.outcome.value.fencingToken);
      else if (reply?.outcome.case === "completed" && chance(0.3)) await claim(target);
    },
    async actLate() {
      const late = held[random.below(held.length)];
      if (late === undefined || calls.isWornOut(late.target)) return;
      if (chance(0.4)) await extend(late.target, late.token);
      else if (late.result !== undefined) await complete(late.target, late.token, late.result);
      else await giveUp(late.target, late.token);
    },
    async lookUp(target) {
      const { namespace, key } = target;
      await calls.tell([target], (api, options) => api.lookup({ namespace, key }, options));
    },
  };
}
