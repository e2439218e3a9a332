import { newKey } from "@onceward/client";
import type { Changes, Endpoint } from "./endpoint.ts";
import type { Answer } from "./exchange.ts";
import type { Scene } from "./scene.ts";
import { brief, holds, isSuccess, nothing, skipped, type Verdict } from "./verdict.ts";

/** A promise that an idempotent endpoint keeps, and how it is seen from outside. */
export interface Check {
  /** The name, after that of its family and a full stop. */
  readonly id: string;
  /** The promise, as a sentence. */
  readonly fact: string;
  /** What the user must say about the endpoint; without it, the check is skipped. */
  readonly needs?: keyof Endpoint;
  /** Whether it passes because two answers are alike: where all are, it proves nothing. */
  readonly compares?: true;
  /** Sends requests of new operations. Throws NoAnswerError if one gets no answer, which fails the check; BoundReached. */
  run(scene: Scene): Promise<Verdict>;
}

/** Compares the number of effects since the check began; skipped if it is unknown. */
export async function effectsAre(
  scene: Scene,
  expected: number,
  answers: readonly Answer[],
): Promise<Verdict> {
  const effects = await scene.effects(answers);
  if (effects === undefined) return skipped("the number of effects is unknown");
  return holds(effects === expected, `${effects} effects instead of ${expected}`);
}

/** Returns the verdict; a pass counts only if another request has an effect of its own, and is not refused in any case. */
export async function unlessRefusedAnyway(
  scene: Scene,
  changes: Changes,
  verdict: Verdict,
): Promise<Verdict> {
  if (verdict.kind !== "passed") return verdict;
  const alone = await scene.send(scene.request(changes));
  return isSuccess(alone)
    ? verdict
    : nothing(`with a key of its own, the other request gets ${brief(alone)}`);
}

/** Returns a key that every API accepts. */
export function simpleKey(): string {
  return newKey();
}
