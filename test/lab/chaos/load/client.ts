import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { BatchResponseItem } from "../../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import type { ItemRequest } from "../../../support/calls/batches.ts";
import { fingerprintOf } from "../../../support/calls/verbs.ts";
import { createRandom, type Random } from "../../../support/random.ts";
import { openJournal } from "../../history/journal.ts";
import { nowMs } from "../../history/operation.ts";
import { createAdministrator } from "./administrator.ts";
import { type Calls, createCalls } from "./calls.ts";
import type { ClientPlan, FromClient, ProviderQuestion, ToClient } from "./messages.ts";
import { createRuns } from "./runs.ts";
import { createSessions, type Outside, type Sessions } from "./sessions.ts";
import { MARKED, pickTarget, type Target } from "./spaces.ts";
import { startWatch } from "./watch.ts";

const MAX_KEYS = 5;

/**
 * Claims several keys of one tenant in a batch, some of them twice or between lookups, and then settles the
 * granted claims.
 */
async function runBatch(calls: Calls, sessions: Sessions, random: Random, pick: () => Target): Promise<void> {
  const first = pick();
  const targets = [first];
  for (let more = 1 + random.below(MAX_KEYS); more > 0; more--) {
    const other = pick();
    if (other.tenant === first.tenant && !calls.isWornOut(other)) targets.push(other);
  }
  const entries = targets.flatMap((target) => itemsOf(target, random));
  const reply = await calls.tell(
    entries.map(({ target }) => target),
    (api, options) => api.batch({ items: entries.map(({ request }) => ({ request })) }, options),
  );
  if (reply === undefined) return;
  await Promise.all(
    reply.items.map(async (item, index) => {
      const target = entries[index]?.target;
      const token = grantedToken(item);
      if (target !== undefined && token !== undefined) await sessions.settle(target, token);
    }),
  );
}

interface Entry {
  readonly target: Target;
  readonly request: ItemRequest;
}

function itemsOf(target: Target, random: Random): Entry[] {
  const { namespace, key } = target;
  const claim = (): Entry => ({
    target,
    request: {
      case: "claim",
      value: {
        ...{ namespace, key, claimId: randomUUID(), fingerprint: fingerprintOf(key) },
        marksBegin: namespace === MARKED,
      },
    },
  });
  const lookup: Entry = { target, request: { case: "lookup", value: { namespace, key } } };
  const draw = random.next();
  if (draw < 0.25) return [claim(), claim()];
  if (draw < 0.5) return [lookup, claim(), lookup];
  return [claim()];
}

function grantedToken({ response }: BatchResponseItem): bigint | undefined {
  if (response.case !== "claim" || response.value.outcome.case !== "claimed") return undefined;
  return response.value.outcome.value.fencingToken;
}

/**
 * A client process: workers that claim, hold, settle and look up keys that other processes use too, until the
 * process is asked to stop. Its calls and their answers go to its journal.
 */
const unanswered = new Map<number, (answer: string) => void>();
let stopping = false;
let questions = 0;

process.on("message", (message: ToClient) => {
  if (message.kind === "answer") {
    unanswered.get(message.id)?.(message.answer);
    unanswered.delete(message.id);
  } else if (message.kind === "stop") stopping = true;
  else void run(message.plan);
});
// The run has ended: nothing would read the journal.
process.on("disconnect", () => process.exit());
// A terminal's Ctrl-C reaches the run, which stops its clients itself.
process.on("SIGINT", () => {});
tell({ kind: "ready" });

function tell(message: FromClient): void {
  process.send?.(message);
}

const outside: Outside = {
  open: (target, token) => askProvider("open", target, token),
  charge: (target, token) => askProvider("charge", target, token),
  look: (target) => askProvider("look", target, 0),
};

function askProvider(ask: ProviderQuestion["ask"], target: Target, token: number): Promise<string> {
  const { tenant, namespace, key, fenced } = target;
  const id = ++questions;
  tell({ kind: "question", question: { id, ask, fenced, token, record: { tenant, namespace, key } } });
  return new Promise((resolve) => unanswered.set(id, resolve));
}

/** The longest pause between two calls of a worker: a pace that leaves the machine to the service. */
const PAUSE_MS = 12;

async function run(plan: ClientPlan): Promise<void> {
  const random = createRandom(plan.seed);
  const journal = openJournal(plan.journalPath);
  const calls = createCalls(plan, journal, random);
  const sessions = createSessions(calls, outside, random, plan.client);
  const runs = createRuns(plan, journal, outside, random);
  const watch = startWatch(plan);
  const pick = () => pickTarget(random, nowMs() - plan.originMs, plan.round);

  async function worker(): Promise<void> {
    while (!stopping) {
      const target = pick();
      const draw = random.next();
      if (draw < 0.1) await sessions.actLate();
      else if (!calls.isWornOut(target)) {
        if (draw < 0.2) await sessions.lookUp(target);
        else if (draw < 0.3) await runs.runOnce(sessions.nextCrashed() ?? target);
        else if (draw < 0.45) await runBatch(calls, sessions, random, pick);
        else await sessions.claimOnce(target);
      }
      await pause(PAUSE_MS * random.next());
    }
  }

  const administrator =
    plan.adminKey === undefined
      ? undefined
      : createAdministrator(plan, plan.adminKey, journal, calls, random);
  await Promise.all([...Array.from({ length: plan.workers }, worker), administrator?.run(() => stopping)]);
  await runs.close();
  tell({ kind: "looks", looks: await watch.stop() });
  tell({ kind: "retention", changes: administrator?.changes() ?? [] });
  tell({ kind: "done" });
}
