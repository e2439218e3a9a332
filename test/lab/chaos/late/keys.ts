import type { NamespacePolicy } from "../../history/operation.ts";

const LEASE_MS = 2000;
export const RETENTION_MS = 60_000;

const BRIEF = {
  defaultLeaseMs: LEASE_MS,
  onLeaseExpiry: "RECLAIM",
  keyRetentionMs: RETENTION_MS,
  resultRetentionMs: RETENTION_MS,
  failureRetentionMs: RETENTION_MS,
} as const;

/** The namespace that refuses late keys, and the one beside it that runs them. */
export const REFUSING = "late-refused";
export const RUNNING = "late-run";

/** The namespaces of the load. */
export const LATE_NAMESPACES: readonly Omit<NamespacePolicy, "tenant">[] = [
  { namespace: REFUSING, ...BRIEF, refusesLateKeys: true },
  { namespace: RUNNING, ...BRIEF },
];

/** A key is created in each step of the wall clock, so that all clients know all keys. */
export const STEP_MS = 40;
/** One key in so many is delivered to the namespace that runs late keys, too. */
const ALSO_RUN = 10;
/** One key in so many is delivered for the first time when it is too old. */
const BORN_LATE = 20;
const BORN_LATE_MS = 2 * RETENTION_MS;

/** One operation of the callers, which is delivered many times. */
export interface LateKey {
  readonly key: string;
  /** Milliseconds since the Unix epoch. */
  readonly createdAtMs: number;
  /** Whether the claim has to name the time: the key does not contain it. */
  readonly isNamed: boolean;
  readonly namespaces: readonly string[];
}

/** Returns the key of a step; equal numbers give equal keys in every process. */
export function lateKey(step: number, round: string): LateKey {
  const createdAtMs = step * STEP_MS - (step % BORN_LATE === 0 ? BORN_LATE_MS : 0);
  const isNamed = step % 2 === 0;
  return {
    key: isNamed ? `${round}-${step}` : uuid7(createdAtMs, step),
    createdAtMs,
    isNamed,
    namespaces: step % ALSO_RUN === 3 ? [REFUSING, RUNNING] : [REFUSING],
  };
}

function uuid7(createdAtMs: number, step: number): string {
  const time = createdAtMs.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${step.toString(16).padStart(12, "0")}`;
}
