import { createRateLimit } from "../access/rate-limit.ts";
import { Refusal } from "../domain/refusal.ts";
import { countedAddress } from "../transport/bounds/connections.ts";

/** Bounds the attempts to sign in that fail, those that are in progress, and the sign-ins of one credential. */
export type Attempts = ReturnType<typeof createAttempts>;

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
/**
 * Of an address from which too many attempts have failed: enough for a person beside a program that fails all the time, and few
 * enough that such programs leave places to other addresses.
 */
const MAX_IN_PROGRESS_OF_FAILING = 4;

/** Creates the count of failed attempts to sign in. */
export function createAttempts() {
  const ofAddresses = createRateLimit<string>();
  const inAll = createRateLimit<string>();
  const ofCredentials = createRateLimit<string>();
  let inProgress = 0;
  const inProgressOf = new Map<string, number>();
  const placesOf = (address: string) => inProgressOf.get(address) ?? 0;

  /** Counts an attempt as failed. Returns the refusal, and counts nothing, if too many have failed. */
  function take(address: string): Refusal | undefined {
    const nowMs = performance.now();
    const waitMs = ofAddresses.take(address, PER_ADDRESS, nowMs);
    if (waitMs > 0) return tooMany(`${FAILED} from this address.`, PER_ADDRESS.burst, waitMs);
    const allWaitMs = inAll.take(ALL, IN_ALL, nowMs);
    if (allWaitMs === 0) return undefined;
    ofAddresses.giveBack(address, PER_ADDRESS, nowMs);
    return tooMany(`${FAILED} on this replica.`, IN_ALL.burst, allWaitMs);
  }

  function giveBack(address: string): void {
    const nowMs = performance.now();
    ofAddresses.giveBack(address, PER_ADDRESS, nowMs);
    inAll.giveBack(ALL, IN_ALL, nowMs);
  }

  async function inPlace<Result>(address: string, attempt: () => Promise<Result>): Promise<Result> {
    if (inProgress >= MAX_IN_PROGRESS) {
      const details = { retryAfterMs: OVERLOADED_RETRY_AFTER_MS };
      throw new Refusal("OVERLOADED", "This replica has more sign-ins in progress than it accepts.", details);
    }
    inProgress++;
    inProgressOf.set(address, placesOf(address) + 1);
    try {
      return await attempt();
    } finally {
      inProgress--;
      inProgressOf.set(address, placesOf(address) - 1);
      if (placesOf(address) === 0) inProgressOf.delete(address);
    }
  }

  async function counted<Result>(address: string, attempt: () => Promise<Result>): Promise<Result> {
    try {
      const result = await inPlace(address, attempt);
      giveBack(address);
      return result;
    } catch (error) {
      if (!isFailure(error)) giveBack(address);
      throw error;
    }
  }

  return {
    /**
     * Runs an attempt with a credential that this server verifies. One that succeeds, and one that the service could not decide, is
     * not counted. A right credential signs in however many attempts have failed: others behind the same address made them, maybe.
     *
     * @throws Refusal QUOTA_RATE if the attempt fails and too many have failed, or if too many of its address are then in progress;
     *   OVERLOADED if too many are in progress; as `attempt` does.
     */
    async run<Result>(peer: string | undefined, attempt: () => Promise<Result>): Promise<Result> {
      const address = countedAddress(peer ?? "");
      const refusal = take(address);
      if (refusal === undefined) return await counted(address, attempt);
      if (placesOf(address) >= MAX_IN_PROGRESS_OF_FAILING) throw refusal;
      try {
        return await inPlace(address, attempt);
      } catch (error) {
        throw isFailure(error) ? refusal : error;
      }
    },
    /**
     * Runs an attempt that asks the issuer, and counts as `run` does. It is not made if too many have failed: the issuer is not to
     * be asked on behalf of anybody who has no credential.
     *
     * @throws Refusal QUOTA_RATE if too many attempts have failed; OVERLOADED if too many are in progress; as `attempt` does.
     */
    async runAtIssuer<Result>(peer: string | undefined, attempt: () => Promise<Result>): Promise<Result> {
      const address = countedAddress(peer ?? "");
      const refusal = take(address);
      if (refusal !== undefined) throw refusal;
      return await counted(address, attempt);
    },
    /**
     * Counts a sign-in of a verified credential, by the id of its key or its token's subject.
     *
     * @throws Refusal QUOTA_RATE if there have been too many.
     */
    countSignIn(actor: string): void {
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
