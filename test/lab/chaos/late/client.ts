import { setTimeout as pause } from "node:timers/promises";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ItemRequest } from "../../../support/calls/batches.ts";
import { success } from "../../../support/calls/verbs.ts";
import { createRandom, type Random } from "../../../support/random.ts";
import { openJournal } from "../../history/journal.ts";
import { marked } from "../../history/messages.ts";
import { type Calls, createCalls } from "../load/calls.ts";
import type { ClientPlan, FromClient, ToClient } from "../load/messages.ts";
import { TENANTS } from "../load/spaces.ts";
import { type LateKey, lateKey, RETENTION_MS, STEP_MS } from "./keys.ts";

/**
 * A client process: delivers each key when it is created, some a second time soon, and all of them again and again, minutes
 * after their retention has ended, until the process is asked to stop.
 */
const BATCH = 900;
/** How often each worker delivers keys; a batch takes a part of it. */
const TURN_MS = 1000;
/** Of the old keys, how many a worker repeats in a turn: each key comes back about every eight seconds. */
const REPEATED = 1 / 48;
/** Keys of the last minute that are delivered twice at a time. */
const YOUNG = 30;
/** Some holders crash. */
const COMPLETED = 0.9;
const TIMEOUT_MS = 10_000;
const [TENANT] = TENANTS;

let stopping = false;

process.on("message", (message: ToClient) => {
  if (message.kind === "stop") stopping = true;
  else if (message.kind === "start") void run(message.plan);
});
// The run has ended: nothing would read the journal.
process.on("disconnect", () => process.exit());
// A terminal's Ctrl-C reaches the run, which stops its clients itself.
process.on("SIGINT", () => {});
tell({ kind: "ready" });

function tell(message: FromClient): void {
  process.send?.(message);
}

async function run(plan: ClientPlan): Promise<void> {
  const random = createRandom(plan.seed);
  const calls = createCalls(plan, openJournal(plan.journalPath), random);
  const firstStep = currentStep();
  let nextStep = firstStep;
  await Promise.all(
    Array.from({ length: plan.workers }, async () => {
      while (!stopping) {
        const turn = pause(TURN_MS);
        const now = currentStep();
        // Every client delivers every new key: the first one to come is granted it.
        const fresh = stepsBetween(nextStep, now);
        nextStep = now;
        const steps = [...fresh, ...youngSteps(random, firstStep, now), ...lateSteps(random, firstStep, now)];
        const keys = steps.slice(0, BATCH).map((step) => lateKey(step, plan.round));
        await deliver(calls, random, keys);
        await turn;
      }
    }),
  );
  tell({ kind: "looks", looks: [] });
  tell({ kind: "retention", changes: [] });
  tell({ kind: "done" });
}

function currentStep(): number {
  return Math.floor(Date.now() / STEP_MS);
}

function stepsBetween(from: number, to: number): number[] {
  return Array.from({ length: Math.max(0, to - from) }, (_, index) => from + index);
}

function youngSteps(random: Random, first: number, now: number): number[] {
  const young = Math.min(now - first, RETENTION_MS / STEP_MS);
  return Array.from({ length: Math.min(YOUNG, young) }, () => now - 1 - random.below(young));
}

function lateSteps(random: Random, first: number, now: number): number[] {
  const old = now - first - RETENTION_MS / STEP_MS;
  return Array.from({ length: Math.max(0, Math.round(old * REPEATED)) }, () => first + random.below(old));
}

/** Claims the keys, in a namespace after the other, and completes most of what is granted. */
async function deliver(calls: Calls, random: Random, keys: readonly LateKey[]): Promise<void> {
  const byNamespace = new Map<string, Map<string, LateKey>>();
  for (const key of keys)
    for (const namespace of key.namespaces) byNamespace.getOrInsert(namespace, new Map()).set(key.key, key);
  for (const [namespace, chosen] of byNamespace) {
    const own = [...chosen.values()];
    const replies = await send(
      calls,
      own.map((key) => claimOf(namespace, key)),
    );
    const completions = replies.flatMap(({ response }, index): ItemRequest[] => {
      const key = own[index]?.key;
      if (response.case !== "claim" || response.value.outcome.case !== "claimed" || key === undefined)
        return [];
      if (random.next() >= COMPLETED) return [];
      const { fencingToken } = response.value.outcome.value;
      const result = success(marked(TENANT, `${key} #${fencingToken}`));
      return [{ case: "complete", value: { namespace, key, fencingToken, result } }];
    });
    if (completions.length > 0) await send(calls, completions);
  }
}

async function send(calls: Calls, requests: readonly ItemRequest[]) {
  const items = requests.map((request) => ({ request }));
  const reply = await calls.tell(
    [{ tenant: TENANT, namespace: "", key: "" }],
    (api, options) => api.batch({ items }, options),
    TIMEOUT_MS,
  );
  return reply?.items ?? [];
}

function claimOf(namespace: string, { key, createdAtMs, isNamed }: LateKey): ItemRequest {
  const keyCreatedAt = timestampFromMs(createdAtMs);
  return { case: "claim", value: { namespace, key, ...(isNamed && { keyCreatedAt }) } };
}
