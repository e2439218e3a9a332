import { createRateLimit } from "../../core/admission/rate-limit.ts";
import { Refusal } from "../../core/domain/refusal.ts";
import { countedAddress } from "../../core/transport/connections.ts";

/** Bounds the attempts to sign in that fail, those that are in progress, and the sign-ins of one credential. */
export interface Attempts {
  /**
   * Runs an attempt. One that succeeds, and one that the service could not decide, is not counted.
   *
   * @throws Refusal QUOTA_RATE if too many attempts have failed; OVERLOADED if too many are in progress; as `attempt` does.
   */
  run<Result>(peer: string | undefined, attempt: () => Promise<Result>): Promise<Result>;
  /**
   * Counts a sign-in of a verified credential, by the id of its key or its token's subject.
   *
   * @throws Refusal QUOTA_RATE if there have been too many.
   */
  countSignIn(actor: string): void;
}

/** A person who mistypes needs a few; a balancer that shows its own address has many people behind it. */
const PER_ADDRESS = { burst: 20, perSecond: 0.2 };
const IN_ALL = { burst: 200, perSecond: 20 };
const ALL = "all";
const FAILED = "Too many attempts to sign in have failed";
/** Five times the sessions that a key can have. Each sign-in writes to the audit, which is not to be filled with them. */
const PER_CREDENTIAL = { burst: 100, perSecond: 0.5 };
/** Each may hold a connection to the database or to the issuer. */
const MAX_IN_PROGRESS = 32;
const OVERLOADED_RETRY_AFTER_MS = 500;

/** Creates the count of failed attempts to sign in. */
export function createAttempts(): Attempts {
  const ofAddresses = createRateLimit<string>();
  const inAll = createRateLimit<string>();
  const ofCredentials = createRateLimit<string>();
  let inProgress = 0;

  function take(address: string): void {
    const nowMs = performance.now();
    const waitMs = ofAddresses.take(address, PER_ADDRESS, nowMs);
    if (waitMs > 0) throw tooMany(`${FAILED} from this address.`, PER_ADDRESS.burst, waitMs);
    const allWaitMs = inAll.take(ALL, IN_ALL, nowMs);
    if (allWaitMs === 0) return;
    ofAddresses.giveBack(address, PER_ADDRESS, nowMs);
    throw tooMany(`${FAILED} on this replica.`, IN_ALL.burst, allWaitMs);
  }

  function giveBack(address: string): void {
    const nowMs = performance.now();
    ofAddresses.giveBack(address, PER_ADDRESS, nowMs);
    inAll.giveBack(ALL, IN_ALL, nowMs);
  }

  return {
    async run(peer, attempt) {
      const address = countedAddress(peer ?? "");
      take(address);
      if (inProgress >= MAX_IN_PROGRESS) {
        giveBack(address);
        const details = { retryAfterMs: OVERLOADED_RETRY_AFTER_MS };
        throw new Refusal(
          "OVERLOADED",
          "This replica has more sign-ins in progress than it accepts.",
          details,
        );
      }
      inProgress++;
      try {
        const result = await attempt();
        giveBack(address);
        return result;
      } catch (error) {
        if (!isFailure(error)) giveBack(address);
        throw error;
      } finally {
        inProgress--;
      }
    },
    countSignIn(actor) {
      const waitMs = ofCredentials.take(actor, PER_CREDENTIAL, performance.now());
      if (waitMs > 0)
        throw tooMany("This key or token has signed in too often.", PER_CREDENTIAL.burst, waitMs);
    },
  };
}

/** Whether an attempt was decided, against its caller. */
function isFailure(error: unknown): boolean {
  const cause = error instanceof Error && error.cause instanceof Refusal ? error.cause : error;
  return (
    cause instanceof Refusal &&
    [
      "CREDENTIAL_INVALID",
      "CREDENTIAL_MISSING",
      "INVALID_REQUEST",
      "TENANT_SUSPENDED",
      "TENANT_MOVING",
    ].includes(cause.reason)
  );
}

function tooMany(description: string, limit: number, retryAfterMs: number): Refusal {
  return new Refusal("QUOTA_RATE", description, {
    metadata: { scope: "replica", limit: String(limit) },
    quota: { subject: "sign-in", description },
    retryAfterMs: Math.ceil(retryAfterMs),
  });
}
