import {
  LATE_KEY_GRACE_S,
  type Lengthening,
  type Policy,
  type PolicyHistory,
  type PolicyInForce,
  refusesLateKeys,
} from "../domain/policy.ts";
import type { ClaimCommand } from "./record.ts";

/**
 * Returns until when a key that was created at a time may be claimed as a new operation, in milliseconds since the Unix
 * epoch, by a policy that refuses late keys.
 *
 * The record of a key that was claimed under an earlier policy may have ended by that policy. While late keys were granted,
 * records were kept for no longer than `keyRetentionS`, so such a key is refused LATE_KEY_GRACE_S earlier. With a short
 * retention that would refuse every key for minutes, hence half of it: right for senders whose clocks are ahead by less.
 */
export function acceptedUntilMs(createdAtMs: number, policy: PolicyInForce): number {
  const { keyRetentionS, lengthenings, refusedSinceMs } = policy;
  const limitS = lengthenings
    .filter(({ atMs }) => mayBeClaimedBefore(createdAtMs, atMs))
    .reduce((shortestS, { beforeS }) => Math.min(shortestS, beforeS), keyRetentionS);
  const isFromRun = refusedSinceMs !== undefined && mayBeClaimedBefore(createdAtMs, refusedSinceMs);
  return createdAtMs + 1000 * (isFromRun ? Math.max(limitS - LATE_KEY_GRACE_S, limitS / 2) : limitS);
}

/** When records were lost the last time: the database went back in time. Set by the watch of the installation. */
export interface RecordLoss {
  /** By the database's clock, in milliseconds since the Unix epoch; 0: never; undefined: not read yet. */
  lastAtMs: number | undefined;
}

/**
 * Returns the claim as it may be decided after a loss of records: if late keys are refused, a key that was created before the
 * loss begins no life, because the record of its first one may be lost.
 */
export function claimAfterLoss(command: ClaimCommand, lostAtMs: number | undefined): ClaimCommand {
  const { acceptedUntilMs, keyCreatedAtMs } = command;
  if (lostAtMs === undefined || acceptedUntilMs === undefined || keyCreatedAtMs === undefined) return command;
  if (keyCreatedAtMs > lostAtMs) return command;
  return { ...command, acceptedUntilMs: Math.min(acceptedUntilMs, keyCreatedAtMs) };
}

/** Whether a key that was created at a time may have been claimed under the policy that was changed at another. */
function mayBeClaimedBefore(createdAtMs: number, changedAtMs: number): boolean {
  return createdAtMs <= changedAtMs + LATE_KEY_GRACE_S * 1000;
}

/**
 * Returns what the policies up to now leave behind when one follows another. Of several lengthenings that still matter, it
 * keeps the latest time and the shortest retention: more keys are refused than necessary, and never too few.
 */
export function historyAfter(was: PolicyInForce, becomes: Policy, nowMs: number): PolicyHistory {
  // Later, each key from before is older than the retention in force.
  const isInEffect = ({ atMs }: Lengthening) => nowMs < atMs + 1000 * (LATE_KEY_GRACE_S + was.keyRetentionS);
  const lengthenings = was.lengthenings.filter(isInEffect);
  if (becomes.keyRetentionS > was.keyRetentionS) {
    lengthenings.push({ atMs: nowMs, beforeS: was.keyRetentionS });
  }
  const begins = refusesLateKeys(becomes) && !refusesLateKeys(was);
  return {
    lengthened: lengthenings.length === 0 ? undefined : mergeLengthenings(lengthenings),
    refusedSinceMs: begins ? nowMs : was.refusedSinceMs,
  };
}

function mergeLengthenings(lengthenings: readonly Lengthening[]): Lengthening {
  return {
    atMs: Math.max(...lengthenings.map(({ atMs }) => atMs)),
    beforeS: Math.min(...lengthenings.map(({ beforeS }) => beforeS)),
  };
}
