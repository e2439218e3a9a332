import { isDeepStrictEqual } from "node:util";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import type { ClaimResponse } from "../../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { openPool } from "../../../../server/src/database/pool.ts";
import { type AdministeredTenant, describeAdministration } from "../../../support/calls/admin.ts";
import { describeError } from "../../../support/calls/errors.ts";
import { ageRecords } from "../../../support/calls/records.ts";
import { completeWith, FORGET, RELEASE, resolve } from "../../../support/calls/resolutions.ts";
import { fingerprintOf, seconds, success } from "../../../support/calls/verbs.ts";
import { sweepAll } from "../../../support/database/time.ts";
import { setNamespacePolicy } from "../../../support/servers/tenants.ts";
import {
  LEASE_MINUTES,
  type ModelAnswer,
  type ModelKey,
  type ModelStep,
  type ModelTrace,
  RECLAIM_WITHIN,
  RETENTION_MINUTES,
  readTraces,
} from "./trace.ts";

/** The real service: a tenant with the namespaces of `namespaceOf`. */
interface RealWorld extends Pick<AdministeredTenant, "caller" | "admin"> {
  /** Makes the rows of keys of this name older. */
  timePasses(key: string, minutes: number): Promise<void>;
  /** Sweeps every due row. */
  sweep(): Promise<void>;
}

/** Returns the namespace of a key of the model. */
function namespaceOf(key: ModelKey, reclaimWithin: number): string {
  return `${key}-${reclaimWithin}`;
}

/** A trace on its way: a key of its own in each namespace. */
interface Replay {
  readonly world: RealWorld;
  readonly trace: ModelTrace;
  readonly key: string;
  /** By the model's key: the real token of each token of the model, in the order of their grants. */
  readonly granted: Readonly<Record<ModelKey, Map<number, bigint>>>;
}

type CallStep = Extract<ModelStep, { kind: "call" }>;

const MINUTE_MS = 60_000;
/** EMPTY_RESULT of the specification. */
const EMPTY_RESULT = 7;

/** An answer in the words of the model. */
interface Answer {
  readonly kind: string;
  readonly token?: bigint;
  readonly attempt?: number;
  readonly result?: string;
}

/**
 * Repeats traces side by side, all of them step by step: what one sweeps may be another's, which no answer shows. Returns the
 * first answer of each trace that differs from the model's, as text.
 */
async function replayTraces(world: RealWorld, traces: readonly ModelTrace[]): Promise<string[]> {
  const replays = traces.map((trace, index): Replay => {
    return { world, trace, key: `trace-${index}`, granted: { charge: new Map(), refund: new Map() } };
  });
  const differences = new Map<Replay, string>();
  const longest = Math.max(...traces.map(({ steps }) => steps.length));
  for (let number = 0; number < longest; number++) {
    const ready = replays.filter((replay) => !differences.has(replay));
    const steps = ready.map(({ trace }) => trace.steps[number]);
    if (steps.some((step) => step?.kind === "sweep")) await world.sweep();
    await Promise.all(
      ready.map(async (replay, index) => {
        const step = steps[index];
        const difference = step && (await replayStep(replay, step));
        if (difference !== undefined)
          differences.set(replay, `${replay.key}, step ${number + 1}: ${difference}`);
      }),
    );
  }
  return [...differences.values()];
}

async function replayStep(replay: Replay, step: ModelStep): Promise<string | undefined> {
  const { world, granted } = replay;
  switch (step.kind) {
    case "minutes":
      return void (await world.timePasses(replay.key, step.minutes));
    case "sweep":
      return undefined;
    case "forget":
      return void (await resolve(world.admin, FORGET, recordOf(replay, step.key)));
    case "release":
      return void (await resolve(world.admin, RELEASE, recordOf(replay, step.key)));
    case "complete":
      // The model's number of what an administrator found out.
      return void (await resolve(world.admin, completeWith(textOf(9)), recordOf(replay, step.key)));
    case "call":
      return compare(step, await answerOf(replay, step), granted[step.command.key]);
    default:
      return step satisfies never;
  }
}

function recordOf({ trace, key }: Replay, modelKey: ModelKey) {
  return { namespace: namespaceOf(modelKey, trace.reclaimWithin), key };
}

/** Compares a real answer with the model's. A new token must be higher than all earlier ones. */
function compare(
  { command, answer }: CallStep,
  real: Answer,
  granted: Map<number, bigint>,
): string | undefined {
  const isNew = answer.kind === "claimed" || answer.kind === "recorded";
  if (isNew && real.token !== undefined) {
    for (const earlier of granted.values()) {
      if (real.token <= earlier) return `token ${real.token} is not higher than ${earlier}`;
    }
    granted.set(answer.token, real.token);
  }
  const expected = inWordsOfReplies(answer, granted);
  if (isDeepStrictEqual(real, expected)) return undefined;
  return `${command.kind} was answered ${inspect(real)}, and by the model ${inspect(expected)}`;
}

function inspect(answer: Answer): string {
  return JSON.stringify(answer, (_name, value) => (typeof value === "bigint" ? `${value}` : value));
}

/** Returns the parts of the model's answer that a reply has. */
function inWordsOfReplies(
  { kind, token, attempt, result }: ModelAnswer,
  granted: ReadonlyMap<number, bigint>,
): Answer {
  switch (kind) {
    case "claimed":
    case "claimed again":
      // The reply does not tell them apart, and the token does.
      return { kind: "claimed", token: granted.get(token) as bigint, attempt };
    case "recorded":
    case "recorded again":
      return { kind: "recorded", token: granted.get(token) as bigint };
    case "replayed":
      return { kind, result: result === EMPTY_RESULT ? "" : textOf(result) };
    case "in progress":
    case "ambiguous":
      return { kind, attempt };
    case "released before":
      return { kind: "released" };
    case "time required":
    case "from the future":
      return { kind: "invalid" };
    default:
      return { kind };
  }
}

const REASONS: Readonly<Record<string, string>> = {
  FINGERPRINT_MISMATCH: "another fingerprint",
  RECORD_NOT_FOUND: "not found",
  CLAIM_SUPERSEDED: "superseded",
  ALREADY_COMPLETED: "already completed",
  ALREADY_RELEASED: "already released",
  KEY_TOO_OLD: "too old",
  INVALID_REQUEST: "invalid",
};

async function answerOf(replay: Replay, step: CallStep): Promise<Answer> {
  try {
    return await call(replay, step);
  } catch (error) {
    const { reason, message } = describeError(error);
    return { kind: REASONS[reason ?? ""] ?? `${reason}: ${message}` };
  }
}

async function call(replay: Replay, { command, keyAgeMinutes }: CallStep): Promise<Answer> {
  const { caller } = replay.world;
  const record = recordOf(replay, command.key);
  const fencingToken = replay.granted[command.key].get(command.token) ?? 0n;
  const retention = command.retention === 1 ? { retention: seconds(60) } : {};
  switch (command.kind) {
    case "claim": {
      const { fingerprint, claimId, acceptsAmbiguous, marksBegin, completes } = command;
      const reply = await caller.claim({
        ...record,
        ...retention,
        ...(fingerprint !== 0 && { fingerprint: fingerprintOf(textOf(fingerprint)) }),
        ...(keyAgeMinutes !== undefined && {
          keyCreatedAt: timestampFromMs(Date.now() - keyAgeMinutes * MINUTE_MS),
        }),
        claimId: claimId === 0 ? "" : textOf(claimId),
        acceptAmbiguous: acceptsAmbiguous,
        marksBegin,
        ...(completes && { completion: {} }),
      });
      if (reply.outcome.case !== "recorded") return claimAnswer(reply);
      // Its caller learns no token, and those of the key rise nevertheless.
      const token = (await caller.lookup(record)).record?.fencingToken;
      return { kind: "recorded", ...(token !== undefined && { token }) };
    }
    case "complete": {
      const result = success(textOf(command.result));
      const { alreadyCompleted } = await caller.complete({ ...record, ...retention, fencingToken, result });
      return { kind: alreadyCompleted ? "completed before" : "completed" };
    }
    case "release":
      await caller.release({ ...record, fencingToken, giveBack: command.givesBack });
      return { kind: "released" };
    case "extend":
      await caller.extendLease({ ...record, fencingToken, begin: command.begins });
      return { kind: "extended" };
    default:
      return command.kind satisfies never;
  }
}

function claimAnswer({ outcome }: ClaimResponse): Answer {
  switch (outcome.case) {
    case "claimed":
      return { kind: "claimed", token: outcome.value.fencingToken, attempt: outcome.value.attempt };
    case "completed": {
      const { result } = outcome.value;
      if (result === undefined) return { kind: "result expired" };
      return { kind: "replayed", result: new TextDecoder().decode(result.payload) };
    }
    case "inProgress":
      return { kind: "in progress", attempt: outcome.value.attempt };
    case "ambiguous":
      return { kind: "ambiguous", attempt: outcome.value.attempt };
    case "recorded":
    case undefined:
      return { kind: "nothing" };
    default:
      return outcome satisfies never;
  }
}

function textOf(number: number): string {
  return `number ${number}`;
}

/** `npm run lab -- model --replay 10000` sets them. */
const RUNS = Number(process.env.ONCEWARD_MODEL_RUNS ?? 200);
const SEED = Number(process.env.ONCEWARD_MODEL_SEED ?? 1);
const STEPS = 30;
/** Traces side by side: their states are in memory at once. */
const SIDE_BY_SIDE = 200;

describeAdministration("The service", (world) => {
  test("answers each call as the model does", { timeout: 3_600_000 }, async () => {
    const { database } = world();
    const pool = openPool({ databaseUrl: database.url, size: 1, throughPgBouncer: false });
    for (let done = 0; done < RUNS; done += SIDE_BY_SIDE) {
      const one = await world().administeredTenant();
      for (const minutes of RECLAIM_WITHIN)
        for (const key of ["charge", "refund"] as const)
          await setNamespacePolicy(database, one.tenant, namespaceOf(key, minutes), {
            key_retention_s: RETENTION_MINUTES * 60,
            default_lease_ms: LEASE_MINUTES * 60_000,
            on_lease_expiry: minutes === 0 ? "HOLD" : "RECLAIM",
            ...(minutes === 3 && { reclaim_within_s: minutes * 60 }),
            late_keys: key === "refund" ? "REQUIRE_TIME" : "RUN",
          });
      const real = {
        ...one,
        timePasses: (key: string, minutes: number) => ageRecords(database, one.tenant, minutes * 60, key),
        sweep: () => sweepAll(pool),
      };
      const seed = SEED + done;
      const traces = await readTraces(seed, Math.min(SIDE_BY_SIDE, RUNS - done), STEPS);
      expect(await replayTraces(real, traces), `seed ${seed}`).toEqual([]);
    }
    await pool.close();
  });
});
