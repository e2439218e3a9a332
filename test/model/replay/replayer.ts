import { isDeepStrictEqual } from "node:util";
import type { ClaimResponse } from "../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import type { AdministeredTenant } from "../../helpers/calls/admin.ts";
import { describeError } from "../../helpers/calls/errors.ts";
import { completeWith, FORGET, RELEASE, resolve } from "../../helpers/calls/resolutions.ts";
import { fingerprintOf, ORDER, seconds, success } from "../../helpers/calls/verbs.ts";
import type { ModelAnswer, ModelCommand, ModelStep, ModelTrace } from "./trace.ts";

/** The real service during one trace: a tenant of its own. */
export interface RealWorld extends Pick<AdministeredTenant, "caller" | "admin"> {
  /** Makes the tenant's rows older. */
  timePasses(minutes: number): Promise<void>;
  sweep(): Promise<void>;
}

/** An answer in the words of the model. */
interface Answer {
  readonly kind: string;
  readonly token?: bigint;
  readonly attempt?: number;
  readonly result?: string;
}

/**
 * Repeats a trace step by step. Returns the first answer that differs from the model's, as text; undefined: none does.
 */
export async function replayTrace(world: RealWorld, trace: ModelTrace): Promise<string | undefined> {
  const granted = new Map<number, bigint>();
  for (const [index, step] of trace.steps.entries()) {
    const difference = await replayStep(world, step, granted);
    if (difference !== undefined) return `step ${index + 1}: ${difference}`;
  }
  return undefined;
}

/** @param granted the real token of each token of the model, in the order of their grants. */
async function replayStep(
  world: RealWorld,
  step: ModelStep,
  granted: Map<number, bigint>,
): Promise<string | undefined> {
  switch (step.kind) {
    case "minutes":
      return void (await world.timePasses(step.minutes));
    case "sweep":
      return void (await world.sweep());
    case "forget":
      return void (await resolve(world.admin, FORGET));
    case "release":
      return void (await resolve(world.admin, RELEASE));
    case "complete":
      // The model's number of what an administrator found out.
      return void (await resolve(world.admin, completeWith(textOf(9))));
    case "call":
      return compare(step, await answerOf(world, step.command, granted), granted);
    default:
      return step satisfies never;
  }
}

/** Compares a real answer with the model's. A new token must be higher than all earlier ones. */
function compare(
  { command, answer }: Extract<ModelStep, { kind: "call" }>,
  real: Answer,
  granted: Map<number, bigint>,
): string | undefined {
  if (answer.kind === "claimed" && real.token !== undefined) {
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
    case "replayed":
      return { kind, result: textOf(result) };
    case "in progress":
    case "ambiguous":
      return { kind, attempt };
    case "released before":
      return { kind: "released" };
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
};

async function answerOf(
  world: RealWorld,
  command: ModelCommand,
  granted: ReadonlyMap<number, bigint>,
): Promise<Answer> {
  try {
    return await call(world, command, granted.get(command.token) ?? 0n);
  } catch (error) {
    const { reason, message } = describeError(error);
    return { kind: REASONS[reason ?? ""] ?? `${reason}: ${message}` };
  }
}

async function call({ caller }: RealWorld, command: ModelCommand, fencingToken: bigint): Promise<Answer> {
  const retention = command.retention === 1 ? { retention: seconds(60) } : {};
  switch (command.kind) {
    case "claim": {
      const { fingerprint, claimId, acceptsAmbiguous } = command;
      const reply = await caller.claim({
        ...ORDER,
        ...retention,
        ...(fingerprint !== 0 && { fingerprint: fingerprintOf(textOf(fingerprint)) }),
        claimId: claimId === 0 ? "" : textOf(claimId),
        acceptAmbiguous: acceptsAmbiguous,
      });
      return claimAnswer(reply);
    }
    case "complete": {
      const result = success(textOf(command.result));
      const { alreadyCompleted } = await caller.complete({ ...ORDER, ...retention, fencingToken, result });
      return { kind: alreadyCompleted ? "completed before" : "completed" };
    }
    case "release":
      await caller.release({ ...ORDER, fencingToken });
      return { kind: "released" };
    case "extend":
      await caller.extendLease({ ...ORDER, fencingToken });
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
    case undefined:
      return { kind: "nothing" };
    default:
      return outcome satisfies never;
  }
}

function textOf(number: number): string {
  return `number ${number}`;
}
