import definitions from "@octokit/webhooks-examples" with { type: "json" };
import type { Random } from "../../helpers/random.ts";

/** One webhook event, to be handled once. */
export interface Operation {
  /**
   * GitHub's `X-GitHub-Delivery`: made with the event, and the same in each delivery of it. It is the
   * idempotency key. A hash of the payload would be none: some of these payloads are equal, although they are
   * two events.
   */
  readonly id: string;
  /** The event's name, such as "push". */
  readonly event: string;
  readonly payload: unknown;
}

/** One message in the queue: the first, second or third delivery of an operation. */
export interface Delivery {
  readonly id: number;
  readonly operation: Operation;
}

/** At which point of its effect a worker is killed. */
export type CrashPoint = "before the call" | "during the call" | "after the call";

/** A worker's death, planned for the first worker that begins an operation's effect. */
export interface Crash {
  readonly point: CrashPoint;
  /** From reaching the point until the kill. */
  readonly delayMs: number;
}

/** All random choices, made before the runs and the same for both. */
export interface Plan {
  readonly operations: readonly Operation[];
  readonly deliveries: readonly Delivery[];
  /** By operation id. */
  readonly crashes: ReadonlyMap<string, Crash>;
}

const DELIVERIES_PER_OPERATION = 3;
const CRASH_POINTS: readonly CrashPoint[] = ["before the call", "during the call", "after the call"];
/** About the provider's own latency, so that a worker dies before, while and after the provider acts. */
const MAX_CRASH_DELAY_MS = 10;

/**
 * Plans three deliveries of every example payload of `@octokit/webhooks-examples`, and where workers are
 * killed.
 */
export function makePlan(random: Random, crashCount: number): Plan {
  const operations = readExamples().map(({ event, payload }) => ({ id: guid(random), event, payload }));
  const repeated = operations.flatMap((operation) =>
    Array<Operation>(DELIVERIES_PER_OPERATION).fill(operation),
  );
  const deliveries = random.shuffle(repeated).map((operation, id) => ({ id, operation }));
  const doomed = random.shuffle(operations).slice(0, crashCount);
  const crashes = new Map(
    doomed.map(({ id }, index) => {
      const point = CRASH_POINTS[index % CRASH_POINTS.length] ?? "before the call";
      return [id, { point, delayMs: random.below(MAX_CRASH_DELAY_MS) }];
    }),
  );
  return { operations, deliveries, crashes };
}

interface Definition {
  readonly name: string;
  readonly examples: readonly unknown[];
}

function readExamples(): readonly { readonly event: string; readonly payload: unknown }[] {
  // The package's types describe a module with a default export, but it is a JSON file.
  const events = definitions as unknown as readonly Definition[];
  return events.flatMap(({ name, examples }) => examples.map((payload) => ({ event: name, payload })));
}

function guid(random: Random): string {
  const hex = Array.from({ length: 32 }, () => random.below(16).toString(16)).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
