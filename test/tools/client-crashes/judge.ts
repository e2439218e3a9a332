import type { Effect } from "./effects.ts";
import type { Outcome } from "./worker.ts";

/** What the policy of a namespace does with a lease that has ended without an outcome. */
export type Policy = "HOLD" | "RECLAIM";

/** How the first worker was ended: killed, or interrupted by its client's close, by its caller, or by its own call's time limit. */
export type Ending = "kill" | "close" | "cancel" | "timeout";

/** All that was seen of one operation, whose first worker was ended early. */
export interface Story {
  readonly policy: Policy;
  readonly ending: Ending;
  /** When the first worker was told to begin, by `performance.now()`: before its claim. */
  readonly begunAtMs: number;
  readonly leaseMs: number;
  /** Undefined: the worker was killed before it printed one. */
  readonly first: Outcome | undefined;
  /** The number of effects when the first worker had ended. */
  readonly effectsOfFirst: number;
  readonly second: Outcome;
  /** The number of effects when the second worker had ended. */
  readonly effectsBeforeAccepting: number;
  /** Of a worker that accepted ambiguity, if the second one was told of it. */
  readonly accepting: Outcome | undefined;
  /** Of a last delivery. */
  readonly last: Outcome;
  readonly effects: readonly Effect[];
}

/** How far the first worker came, which its end decides. */
export type Phase = "before the effect" | "between the effect and its completion" | "after the completion";

/** Returns how far the first worker came. */
export function phaseOf({ effectsOfFirst, effects, second }: Story): Phase {
  if (effectsOfFirst === 0) return "before the effect";
  return effects.length === 1 && second.replayed
    ? "after the completion"
    : "between the effect and its completion";
}

/** Returns the promises that a story breaks, in words. */
export function brokenPromises(story: Story): readonly string[] {
  const { policy, first, second, accepting, last, effects, effectsBeforeAccepting, begunAtMs, leaseMs } =
    story;
  const broken: string[] = [];
  const promise = (holds: boolean, text: string) => {
    if (!holds) broken.push(text);
  };
  const done = accepting ?? second;
  promise(effects.length >= 1, "the effect happens");
  promise(effects.length <= 2, "one crash repeats the effect at most once");
  promise(done.reason === undefined, "a delivery after the crash ends with a value");
  promise(
    last.replayed && last.value === done.value,
    "a last delivery gets the same value, and runs nothing",
  );
  promise(done.value === effects.at(-1)?.number, "the value is that of the last effect");
  if (first !== undefined && first.reason === undefined) {
    promise(effects.length === 1, "an operation that was completed does not run again");
    promise(done.value === first.value, "every delivery gets the first value");
  }
  if (policy === "HOLD")
    promise(effectsBeforeAccepting <= 1, "under HOLD nothing runs again before somebody accepts it");
  else promise(second.reason === undefined, "under RECLAIM the next delivery runs or gets the value");
  const [one, two] = effects;
  if (one !== undefined && two !== undefined) {
    promise(one.derivedKey === two.derivedKey, "both attempts have one derived key");
    promise(two.atMs - begunAtMs >= leaseMs, "nothing runs again before the first lease has expired");
    promise(one.attempt < two.attempt && one.fencingToken < two.fencingToken, "attempts and tokens increase");
  }
  return broken;
}
