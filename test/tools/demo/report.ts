import type { LateOutcomes } from "./late.ts";
import type { Outcome } from "./run.ts";

type Column = "unguarded" | "guarded";

const ROWS: readonly (readonly [label: string, value: (outcome: Outcome) => number | string])[] = [
  ["unique operations", ({ unique }) => unique],
  ["deliveries", ({ deliveries }) => deliveries],
  ["effects", ({ effects }) => effects],
  ["duplicate effects", ({ effects, unique, missing }) => effects - (unique - missing)],
  ["duplicates suppressed", ({ suppressed }) => suppressed],
  ["crashes (workers killed mid-effect)", ({ crashes }) => crashes],
  ["in-progress answers", ({ inProgress }) => inProgress],
  ["ambiguous", ({ ambiguous }) => ambiguous],
  ["calls to the provider", ({ providerCalls }) => providerCalls],
  ["  of these absorbed by its idempotency key", ({ absorbed }) => absorbed],
  ["operations whose deliveries got different answers", ({ disagreeing }) => disagreeing],
  ["failures, retried", ({ failures }) => failures.length],
  ["seconds", ({ durationMs }) => (durationMs / 1000).toFixed(1)],
];

/** Returns a table with both runs side by side. */
export function comparison(outcomes: Readonly<Record<Column, Outcome>>): readonly string[] {
  const labelWidth = Math.max(...ROWS.map(([label]) => label.length));
  const line = (label: string, unguarded: unknown, guarded: unknown) =>
    `  ${label.padEnd(labelWidth)}  ${String(unguarded).padStart(9)}  ${String(guarded).padStart(9)}`;
  return [
    line("", "unguarded", "guarded"),
    ...ROWS.map(([label, value]) => line(label, value(outcomes.unguarded), value(outcomes.guarded))),
  ];
}

/** Explains why `effects` = `unique` can hold across crashes, and under which conditions. */
export function explanation({ absorbed }: Outcome): readonly string[] {
  return [
    "What the figures mean, and what they rest on:",
    "",
    "- An operation is one example payload. Its key is the delivery GUID that GitHub sends with every delivery of an event,",
    "  its fingerprint the payload. (The payload's hash would be no key: some of these payloads are equal.)",
    "- A delivery is a message that the sender put into the queue, three for each operation. Each is acknowledged once. A",
    "  message that comes again because its worker died or met a claim in progress is still the same delivery. So",
    "  deliveries = unique + suppressed.",
    "- The namespace's policy is RECLAIM with a lease of 1 s: a dead worker's claim goes to the next delivery. This policy",
    "  alone means at least once, because it is unknown how far the dead worker came. Onceward can't undo an effect.",
    `- So the effect is idempotent too: each call carries claim.deriveKey("provider") as its Idempotency-Key, the same on`,
    `  every attempt, and the provider answers a key that it knows without a second effect. ${absorbed} calls after crashes were`,
    "  absorbed that way. For a provider without such keys, choose HOLD: at most once, and a crash leaves the record",
    "  ambiguous until an administrator resolves it.",
    "- The unguarded workers handle every delivery, and send no key: they have no stable one.",
  ];
}

/** Returns the promises that the guarded run broke; empty if it kept all. */
export function faults(outcome: Outcome): readonly string[] {
  const { unique, deliveries, effects, missing, suppressed, disagreeing, crashes } = outcome;
  const facts: readonly (readonly [holds: boolean, fault: string])[] = [
    [effects === unique, `${effects} effects for ${unique} operations`],
    [missing === 0, `${missing} operations without an effect`],
    [
      unique + suppressed === deliveries,
      `${unique} unique + ${suppressed} suppressed are not ${deliveries} deliveries`,
    ],
    [disagreeing === 0, `${disagreeing} operations whose deliveries got different answers`],
    [crashes > 0, "no worker crashed, so the run shows nothing"],
  ];
  return facts.flatMap(([holds, fault]) => (holds ? [] : [fault]));
}

/** Returns a table of the deliveries that came after retention had ended, with both policies, and what it means. */
export function lateComparison({ run, refuse }: LateOutcomes): readonly string[] {
  const line = (label: string, ...cells: readonly unknown[]) =>
    `  ${label.padEnd(38)}${cells.map((cell) => String(cell).padStart(14)).join("")}`;
  return [
    "The same deliveries, once more on Tuesday: the keys of Friday are forgotten, by Onceward and by the provider.",
    "",
    line("", "RUN (default)", "REQUIRE_TIME"),
    line("late deliveries", run.redelivered, refuse.redelivered),
    line("refused as too old", run.refused, refuse.refused),
    line("effects for the second time", run.effects, refuse.effects),
    "",
    "- Each message carries the time at which it was first sent (keyCreatedAt); a key that is a UUID of version 7 carries it itself.",
    "- A key that is younger than its retention has its record, if it was ever claimed. So a key that is older and has none is",
    "  refused with late_keys REQUIRE_TIME, and a person finds out what happened.",
  ];
}

/** Returns what does not hold of the late deliveries; empty if all does. */
export function lateFaults({ run, refuse }: LateOutcomes): readonly string[] {
  const faults: string[] = [];
  if (refuse.effects > 0) faults.push(`${refuse.effects} late deliveries had an effect`);
  if (refuse.refused !== refuse.redelivered) {
    faults.push(`${refuse.refused} of ${refuse.redelivered} late deliveries were refused`);
  }
  if (run.effects === 0)
    faults.push("no late delivery had an effect without the policy, so the run shows nothing");
  return faults;
}

/** The last line of the demo. */
export function summary({ unique, deliveries, effects, suppressed }: Outcome): string {
  return `unique=${unique} deliveries=${deliveries} effects=${effects} suppressed=${suppressed}`;
}
