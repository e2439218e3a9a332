import { durationMs } from "@bufbuild/protobuf/wkt";
import { OncewardError } from "../errors/errors.ts";
import { errorFromCall } from "../errors/mapping.ts";
import type { Claimed } from "../gen/onceward/v1/idempotency_pb.ts";
import type { Calls } from "./calls.ts";
import { isClaimGone, leaseEndsAtMs } from "./lease.ts";
import { leaseNowMs } from "./lease-clock.ts";
import { retryingHeld } from "./retry.ts";

/**
 * How many answers in turn may come after the lease that they grant. Pauses of a process are rare, so that more of them
 * mean a lease that is shorter than the service's answers take.
 */
export const MAX_LATE_ANSWERS = 3;

/** A granted claim, and when the call was sent that its lease counts from, on the clock of `leaseNowMs`. */
export interface Granted {
  readonly claimed: Claimed;
  readonly sentAtMs: number;
}

/**
 * Returns the claim with a lease that lasts now, so that its function may begin.
 *
 * An answer may come after the lease that it grants: the process was stopped, its event loop stalled, or the network was
 * slow. Until another holder has taken over, a heartbeat renews the lease, also after its end. It is preferred to another
 * Claim, which would count as one more attempt, or make the record ambiguous although nothing ran.
 *
 * @returns undefined if the claim is gone: claim again.
 * @throws OncewardError DEADLINE_EXCEEDED if several answers in turn come late; the reason of a signal; OncewardError.
 */
export async function renewIfLate(
  calls: Calls,
  { namespace = "", key = "" }: { readonly namespace?: string; readonly key?: string },
  granted: Granted,
  timeoutMs: number,
  signal: AbortSignal | undefined,
): Promise<Granted | undefined> {
  let { claimed, sentAtMs } = granted;
  for (let answers = 1; isLate({ claimed, sentAtMs }); answers++) {
    if (answers > MAX_LATE_ANSWERS) throw alwaysLate();
    const { fencingToken } = claimed;
    try {
      const extend = () => {
        sentAtMs = leaseNowMs();
        return calls.orEnd(calls.extendLease({ namespace, key, fencingToken }), signal);
      };
      const { leaseRemaining } = await retryingHeld(
        extend,
        performance.now() + timeoutMs,
        calls.closing,
        signal,
      );
      claimed = { ...claimed, leaseRemaining };
    } catch (cause) {
      if (!calls.closing.aborted && isClaimGone(errorFromCall(cause))) return undefined;
      throw cause;
    }
  }
  return { claimed, sentAtMs };
}

/** Returns the error of a run whose claims all came late. */
export function alwaysLate(): OncewardError {
  return new OncewardError(
    "DEADLINE_EXCEEDED",
    "Each answer of the service came after the lease that it granted.",
  );
}

function isLate({ claimed: { leaseRemaining }, sentAtMs }: Granted): boolean {
  const remainingMs = leaseRemaining === undefined ? 0 : durationMs(leaseRemaining);
  return leaseNowMs() >= leaseEndsAtMs(sentAtMs, remainingMs);
}
