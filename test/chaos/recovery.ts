import type { Injection } from "./injector.ts";
import type { Look } from "./load/watch.ts";

/** How soon after a fault's end a client was served by a replica again. */
export interface Recovery {
  readonly fault: string;
  readonly client: string;
  readonly replica: string;
  /** Infinity: it never was. */
  readonly afterMs: number;
}

/** What every client may expect of every replica once a fault is over. */
export const LATEST_MS = 2000;

/**
 * How soon all that a fault may have hit was well again: of each client and each replica, the first claim that was granted
 * after the fault's end. Where another fault broke the same in less than `LATEST_MS` after it, its own end counts instead;
 * what ended so late that nobody looked on for as long tells nothing.
 */
export function recoveriesOf(
  looks: readonly Look[],
  injections: readonly Injection[],
  watchedUntilMs: number,
): Recovery[] {
  const pairs = Map.groupBy(looks, ({ client, replica }) => `${client} ${replica}`);
  return [...pairs.values()].flatMap((own) => {
    const [pair] = own;
    if (pair === undefined) return [];
    const { client, replica } = pair;
    const hits = injections.filter((injection) => mayHit(injection, pair));
    const grantedAtMs = own.flatMap((look) => look.grantedAtMs ?? []).sort((a, b) => a - b);
    return hits
      .filter(({ healedAtMs }) => healedAtMs + LATEST_MS <= watchedUntilMs)
      .filter((injection) => !hits.some((other) => isInTheWay(other, injection)))
      .map(({ fault, healedAtMs }) => {
        const first = grantedAtMs.find((atMs) => atMs > healedAtMs) ?? Number.POSITIVE_INFINITY;
        return { fault, client, replica, afterMs: first - healedAtMs };
      });
  });
}

/** Whether it took too long. */
export function isLate({ afterMs }: Recovery): boolean {
  return afterMs > LATEST_MS;
}

/** A late recovery in words. */
export function describeRecovery({ fault, client, replica, afterMs }: Recovery): string {
  const when = Number.isFinite(afterMs) ? `only ${Math.round(afterMs)} ms` : "never again";
  return `${replica} served ${client} ${when} after ${fault} had healed`;
}

function mayHit(injection: Injection, { client, replica }: Look): boolean {
  return (injection.replica ?? replica) === replica && (injection.client ?? client) === client;
}

/** Nothing that happens to Redis, to some rows or to other callers is an excuse. */
function isInTheWay(other: Injection, { healedAtMs }: Injection): boolean {
  const interrupts = other.target === "postgres" || other.target === "replica" || other.client !== undefined;
  return interrupts && other.startedAtMs < healedAtMs + LATEST_MS && other.healedAtMs > healedAtMs;
}
