import type { IdleTime } from "./idle-time.ts";
import type { Injection } from "./injector.ts";
import type { Look } from "./load/watch.ts";

/** How soon after a fault's end a replica served a client again. */
export interface Recovery {
  readonly fault: string;
  readonly client: string;
  readonly replica: string;
  /** In milliseconds; Infinity: never. */
  readonly afterMs: number;
  /** For how long a processor of the machine was idle until then, or until the watch ended. */
  readonly idleMs: number;
}

/**
 * Every replica must serve every client again this long after a fault's end. Only the time counts in which a processor was
 * idle: on a busy machine no one can tell a slow service from one that waits for a processor.
 */
export const LATEST_MS = 2000;

/**
 * Returns, for each fault and each pair of client and replica that it may have hit, when the first claim was
 * granted after the fault's end, of a key that it may have hit. If another fault broke the same within `LATEST_MS`, its end counts instead.
 * Faults that ended less than `LATEST_MS` before the watch are skipped.
 */
export function recoveriesOf(
  looks: readonly Look[],
  injections: readonly Injection[],
  watchedUntilMs: number,
  idleTime: IdleTime,
): Recovery[] {
  const pairs = Map.groupBy(looks, ({ client, replica }) => `${client} ${replica}`);
  return [...pairs.values()].flatMap((own) => {
    const [pair] = own;
    if (pair === undefined) return [];
    const { client, replica } = pair;
    const hits = injections.filter((injection) => mayHit(injection, pair));
    const granted = own
      .flatMap(({ key, grantedAtMs: atMs }) => (atMs === undefined ? [] : { key, atMs }))
      .sort((a, b) => a.atMs - b.atMs);
    return hits
      .filter(({ healedAtMs }) => healedAtMs + LATEST_MS <= watchedUntilMs)
      .filter((injection) => !hits.some((other) => excuses(other, injection)))
      .map(({ fault, healedAtMs, keys }) => {
        const first = granted.find(({ atMs, key }) => atMs > healedAtMs && (keys?.(key) ?? true));
        const idleMs = idleTime.between(healedAtMs, first?.atMs ?? watchedUntilMs);
        const afterMs = (first?.atMs ?? Number.POSITIVE_INFINITY) - healedAtMs;
        return { fault, client, replica, afterMs, idleMs };
      });
  });
}

/** Returns whether a recovery took too long although a processor was idle. */
export function isLate({ idleMs }: Recovery): boolean {
  return idleMs > LATEST_MS;
}

/** Describes a late recovery. */
export function describeRecovery({ fault, client, replica, afterMs, idleMs }: Recovery): string {
  const when = Number.isFinite(afterMs) ? `only ${Math.round(afterMs)} ms` : "never again";
  return `${replica} served ${client} ${when} after ${fault} healed, with a processor idle for ${Math.round(idleMs)} ms`;
}

/** Returns whether a fault may hit a replica and a client. */
export function mayHit(injection: Injection, { client, replica }: Pick<Look, "client" | "replica">): boolean {
  return (injection.replica ?? replica) === replica && (injection.client ?? client) === client;
}

/**
 * Returns whether another fault excuses a late recovery: faults of Redis, of rows or of other callers do not.
 */
function excuses(other: Injection, { healedAtMs }: Injection): boolean {
  const interrupts = other.target === "postgres" || other.target === "replica" || other.client !== undefined;
  return interrupts && other.startedAtMs < healedAtMs + LATEST_MS && other.healedAtMs > healedAtMs;
}
