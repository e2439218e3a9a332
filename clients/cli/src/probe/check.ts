import type { Endpoint } from "./endpoint.ts";
import type { Answer } from "./exchange.ts";
import type { Scene } from "./scene.ts";
import { holds, skipped, type Verdict } from "./verdict.ts";

/** A promise that an idempotent endpoint keeps, and how it is seen from outside. */
export interface Check {
  /** The name, after that of its family and a full stop. */
  readonly id: string;
  /** The promise, as a sentence. */
  readonly fact: string;
  /** What the user must say about the endpoint; without it, the check is skipped. */
  readonly needs?: keyof Endpoint;
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

/** Returns a key that every API accepts. */
export function simpleKey(): string {
  return crypto.randomUUID();
}
