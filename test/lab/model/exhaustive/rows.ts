import {
  type ClaimCommand,
  type LiveRecord,
  type Phase,
  unfinishedPhase,
} from "../../../../server/src/records/record.ts";

/** A row of `records` in the small scope. Times are minutes; fingerprints and results are numbers. */
export interface Row {
  readonly state: "inProgress" | "completed" | "released" | "forgotten";
  readonly token: number;
  readonly attempt: number;
  readonly fingerprint: number;
  readonly firstClaimed: number;
  /** As ClaimCommand.reclaimWithinS, in minutes; infinity: always. */
  readonly reclaimWithin: number;
  readonly leaseEnds: number;
  readonly ends: number;
  readonly result: number;
}

/** A claim in the small scope. */
export interface Claim {
  readonly key: number;
  readonly fingerprint: number;
  readonly acceptsAmbiguous: boolean;
}

export const LEASE = 1;
export const RETENTION = 2;
export const FENCING_MARGIN = 2;

/** One byte names a fingerprint or a result. */
export const bytesOf = (number: number) => Uint8Array.of(number);

/** Returns the record that a statement reads from a row; undefined: there is none. */
export function recordOf(row: Row | undefined, key: number, now: number): LiveRecord | undefined {
  if (row === undefined || row.state === "forgotten" || row.ends <= now) return undefined;
  return {
    id: { tenantId: 1, namespace: "n", key: String(key) },
    phase: phaseOf(row, row.state, now),
    fencingToken: BigInt(row.token),
    attempt: row.attempt,
    claimId: "",
    owner: "",
    fingerprint: row.fingerprint === 0 ? undefined : bytesOf(row.fingerprint),
    firstClaimedAtMs: 0,
    claimedAtMs: 0,
    leaseExpiresAtMs: row.leaseEnds,
    leaseRemainingMs: row.leaseEnds - now,
    expiresAtMs: row.ends,
    checkpoint: undefined,
  };
}

function phaseOf(row: Row, state: Exclude<Row["state"], "forgotten">, now: number): Phase {
  switch (state) {
    case "inProgress":
      return unfinishedPhase({ leaseExpiresAtMs: row.leaseEnds, heldFromMs: heldFrom(row) }, now);
    case "released":
      return { kind: "released", releasedAtMs: 0, reason: "" };
    case "completed": {
      const result = {
        kind: "success",
        payload: bytesOf(row.result),
        contentType: "",
        metadataJson: "",
      } as const;
      return {
        kind: "completed",
        completedAtMs: 0,
        result,
        resultDigest: bytesOf(row.result),
        resultExpiresAtMs: row.ends,
      };
    }
    default:
      return state satisfies never;
  }
}

/** Returns from when an expired lease of the row is held. */
export function heldFrom({ firstClaimed, reclaimWithin }: Row): number {
  return reclaimWithin === 0 ? Number.NEGATIVE_INFINITY : firstClaimed + reclaimWithin;
}

/** Returns the command of a claim, for the functions of the domain. */
export function commandOf({ key, fingerprint, acceptsAmbiguous }: Claim): ClaimCommand {
  return {
    id: { tenantId: 1, namespace: "n", key: String(key) },
    fingerprint: fingerprint === 0 ? undefined : bytesOf(fingerprint),
    claimId: "",
    owner: "",
    acceptAmbiguous: acceptsAmbiguous,
    marksBegin: false,
    leaseMs: LEASE,
    reclaimWithinS: undefined,
    keyRetentionS: RETENTION,
    resultRetentionS: RETENTION,
    failureRetentionS: RETENTION,
    retentionInForceS: RETENTION,
    keyCreatedAtMs: undefined,
    acceptedUntilMs: undefined,
    waitMs: 0,
  };
}

/** Returns the row that `claim_records` inserts. */
export function insertedRow(claim: Claim, token: number, reclaimWithin: number, now: number): Row {
  return {
    state: "inProgress",
    token,
    attempt: 1,
    fingerprint: claim.fingerprint,
    firstClaimed: now,
    reclaimWithin,
    leaseEnds: now + LEASE,
    ends: now + RETENTION,
    result: 0,
  };
}

/** Returns the row that `take_over_records` leaves; undefined: it changes nothing. */
export function takenOverRow(row: Row, claim: Claim, base: number, now: number): Row | undefined {
  const fresh = insertedRow(claim, Math.max(base, row.token + 1), row.reclaimWithin, now);
  if (row.state === "forgotten" || row.ends <= now) return fresh;
  const agree = row.fingerprint === 0 || claim.fingerprint === 0 || row.fingerprint === claim.fingerprint;
  const isLapsed =
    row.state === "inProgress" && row.leaseEnds <= now && (heldFrom(row) > now || claim.acceptsAmbiguous);
  if (!agree || (row.state !== "released" && !isLapsed)) return undefined;
  const { attempt, firstClaimed, fingerprint } = row;
  return { ...fresh, attempt: attempt + 1, firstClaimed, fingerprint: fingerprint || claim.fingerprint };
}

/** Whether `complete_records`, `release_records` and `extend_leases` change the row. */
export function isSettledBy(row: Row, token: number, now: number): boolean {
  return row.token === token && row.state === "inProgress" && row.ends > now;
}
