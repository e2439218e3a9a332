import type { Claim, CodecRunOptions, Onceward } from "@onceward/client";
import type { Runner } from "../../../clients/typescript/src/run/client.ts";

/**
 * The step at which a client disconnects: while its key is claimed, in the handler, or while the outcome is
 * stored.
 */
export type Moment = "claimed" | "begun" | "written" | "answered";

/**
 * Counts the effects of a test's handlers, and stops the first request at one step until the test resumes it.
 */
export class Steps {
  effects = 0;
  /** The maximum number of concurrent effects. */
  concurrentEffects = 0;
  readonly claims: Claim[] = [];
  /** Resolves when the first request has reached the step. */
  readonly stopped: Promise<void>;
  readonly resume: () => void;
  readonly #stop: () => void;
  readonly #resumed: Promise<void>;
  readonly #moment: Moment | undefined;
  #hasStopped = false;
  #running = 0;

  constructor(moment: Moment | undefined) {
    const stopped = Promise.withResolvers<void>();
    const resumed = Promise.withResolvers<void>();
    this.#moment = moment;
    this.#stop = stopped.resolve;
    this.stopped = stopped.promise;
    this.resume = resumed.resolve;
    this.#resumed = resumed.promise;
  }

  async reach(moment: Moment): Promise<void> {
    if (moment !== this.#moment || this.#hasStopped) return;
    this.#hasStopped = true;
    this.#stop();
    await this.#resumed;
  }

  /** Runs a handler; its effect ends when it resolves or rejects. */
  async run<T>(claim: Claim | undefined, handler: () => Promise<T>): Promise<T> {
    this.effects++;
    this.#running++;
    this.concurrentEffects = Math.max(this.concurrentEffects, this.#running);
    if (claim !== undefined) this.claims.push(claim);
    try {
      await this.reach("begun");
      return await handler();
    } finally {
      this.#running--;
    }
  }

  /** Yields a body in two parts, and stops between them. */
  async *body(): AsyncGenerator<string> {
    yield "one ";
    await this.reach("written");
    yield "two";
  }

  /**
   * Returns a client that stops before it claims a key and before it stores the outcome; adapters add a
   * codec.
   */
  runner(onceward: Onceward): Runner {
    const runDetailed = async <T>(options: CodecRunOptions<T>, fn: (claim: Claim) => T | Promise<T>) => {
      await this.reach("claimed");
      return await onceward.runDetailed(options, async (claim) => {
        try {
          return await fn(claim);
        } finally {
          await this.reach("answered");
        }
      });
    };
    const run = async <T>(options: CodecRunOptions<T>, fn: (claim: Claim) => T | Promise<T>) =>
      (await runDetailed(options, fn)).value;
    return { run, runDetailed } as Runner;
  }
}
