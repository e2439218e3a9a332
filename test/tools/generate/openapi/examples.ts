const KEY = { namespace: "charges", key: "order-1042" };
const AT = "2026-03-01T09:30:00.125Z";
const LATER = "2026-03-04T09:30:00.125Z";
const RESULT = { kind: "KIND_SUCCESS", payload: "eyJjaGFyZ2UiOiJjaF8xIn0=", contentType: "application/json" };
const CLAIM = {
  ...KEY,
  fingerprint: "n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=",
  claimId: "0b5c3c1e-6a0e-4e8e-9d5e-2f1d7a3b9c10",
  lease: "30s",
  owner: "payments-7f9c",
};
const CLAIMED = {
  claimed: {
    fencingToken: "7",
    leaseExpiresAt: "2026-03-01T09:30:30.125Z",
    leaseRemaining: "30s",
    attempt: 1,
    firstClaimedAt: AT,
  },
  expiresAt: LATER,
  serverTime: AT,
};

/** An example of a request, and the responses that it may get, by their names. */
export interface Example {
  readonly request: object;
  readonly responses: Readonly<Record<string, object>>;
}

/** The examples by RPC. A test of the document checks them against its schemas. */
export const EXAMPLES: Readonly<Record<string, Example>> = {
  Claim: {
    request: CLAIM,
    responses: {
      claimed: CLAIMED,
      completed: { completed: { result: RESULT, completedAt: AT }, expiresAt: LATER, serverTime: AT },
      inProgress: {
        inProgress: { owner: "payments-7f9c", attempt: 1, leaseExpiresAt: LATER, retryAfter: "1s" },
        expiresAt: LATER,
        serverTime: AT,
      },
    },
  },
  Complete: {
    request: { ...KEY, fencingToken: "7", result: RESULT },
    responses: { completed: { completedAt: AT, expiresAt: LATER } },
  },
  Release: {
    request: { ...KEY, fencingToken: "7", reason: "the bank did not answer" },
    responses: { released: { expiresAt: LATER } },
  },
  ExtendLease: {
    request: { ...KEY, fencingToken: "7", checkpoint: { name: "charged", state: "Y2hfMQ==" } },
    responses: { extended: { leaseExpiresAt: AT, leaseRemaining: "30s", expiresAt: LATER } },
  },
  Batch: {
    request: { items: [{ claim: CLAIM }] },
    responses: { answered: { items: [{ claim: CLAIMED }] } },
  },
};
