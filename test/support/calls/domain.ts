import type { ClaimCommand, LiveRecord, Phase, Result } from "../../../server/src/records/record.ts";

export const ID = { tenantId: 1, namespace: "charges", key: "order-1" };

/** A result for tests that need no other. */
export const DONE: Result = {
  kind: "success",
  payload: Buffer.from("done"),
  contentType: "",
  metadataJson: "",
};

/** One phase of each kind. */
export const PHASES: { readonly [Kind in Phase["kind"]]: Extract<Phase, { kind: Kind }> } = {
  inProgress: { kind: "inProgress" },
  lapsed: { kind: "lapsed" },
  ambiguous: { kind: "ambiguous", sinceMs: 32_000 },
  released: { kind: "released", releasedAtMs: 5000, reason: "" },
  completed: {
    kind: "completed",
    completedAtMs: 5000,
    result: DONE,
    resultDigest: Buffer.alloc(32, 1),
    resultExpiresAtMs: 90_000,
  },
};

/** Returns a record in a phase, claimed with token 7 and claim id `call-1`. */
export function recordIn(phase: Phase["kind"], fields: Partial<LiveRecord> = {}): LiveRecord {
  return {
    id: ID,
    phase: PHASES[phase],
    fencingToken: 7n,
    attempt: 2,
    claimId: "call-1",
    owner: "worker-1",
    fingerprint: undefined,
    firstClaimedAtMs: 1000,
    claimedAtMs: 2000,
    leaseExpiresAtMs: 32_000,
    leaseRemainingMs: 20_000,
    expiresAtMs: 90_000,
    checkpoint: undefined,
    ...fields,
  };
}

/** A Claim with only the required fields. */
export function claimCommand(fields: Partial<ClaimCommand> = {}): ClaimCommand {
  return {
    id: ID,
    fingerprint: undefined,
    claimId: "",
    owner: "worker-2",
    acceptAmbiguous: false,
    marksBegin: false,
    leaseMs: 30_000,
    reclaimWithinS: undefined,
    keyRetentionS: 3600,
    resultRetentionS: 3600,
    failureRetentionS: 3600,
    retentionInForceS: 3600,
    keyCreatedAtMs: undefined,
    acceptedUntilMs: undefined,
    waitMs: 0,
    ...fields,
  };
}
