import type { Runner } from "../../../clients/typescript/src/run/client.ts";
import type { App, CommonOptions } from "./http-world.ts";
import type { Steps } from "./steps.ts";

/** The ending of a handler: with an answer that is stored, with none, with a part of one, or never. */
export type Ending = "answers" | "fails" | "breaks" | "never ends";

/** A way to answer, which is the handler of the app's route with its name. */
export interface WayFacts {
  readonly ending: Ending;
  /** Whether the client can disconnect when only a part of the answer is written. */
  readonly inParts: boolean;
}

/** The ways to answer in a framework. */
export interface WaysToAnswer {
  readonly ways: Readonly<Record<string, WayFacts>>;
  /** Starts an app with a guarded route for each way, at its `pathOf`. */
  start(onceward: Runner, options: CommonOptions, steps: Steps): Promise<App>;
}

export const answers: WayFacts = { ending: "answers", inParts: false };
export const answersInParts: WayFacts = { ending: "answers", inParts: true };
export const fails: WayFacts = { ending: "fails", inParts: false };
export const breaks: WayFacts = { ending: "breaks", inParts: true };
export const neverEnds: WayFacts = { ending: "never ends", inParts: false };

/** Returns the path of a way's route. */
export function pathOf(way: string): string {
  return `/${way.replaceAll(" ", "-")}`;
}

/** Yields a body whose source fails before the second part. */
export async function* brokenBody(steps: Steps): AsyncGenerator<string> {
  yield "one ";
  await steps.reach("written");
  throw new Error("the source broke");
}

/** Returns a promise that never settles. */
export function forever(): Promise<never> {
  return new Promise(() => {});
}
