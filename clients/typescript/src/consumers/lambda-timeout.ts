import { OncewardError } from "../errors/errors.ts";
import { endedWithin, type Onceward, type Runner } from "../run/client.ts";

/** The part of a client that handlers of Lambda use. The in-memory Onceward of `../testing` has it, too. */
export type LambdaRunner = Runner & Partial<Pick<Onceward, "calls">>;

/** The part of Lambda's context that the adapter reads; `Context` of `@types/aws-lambda` has it. */
export interface LambdaContext {
  /** Returns the time until the invocation's timeout, in milliseconds. */
  getRemainingTimeInMillis(): number;
}

/** Long enough for a release and the answer, short for the timeout of 3 s that Lambda sets by default. */
const RESERVED_MS = 500;
/** The part of it in which claims are released; the rest is for the answer. */
const RELEASE_MS = 400;

/**
 * Calls `fn` with a signal that aborts, as ABORTED, half a second before the invocation's timeout. Settles once the claims
 * of runs that did not begin are released, at most 400 ms after `fn`: Lambda freezes the process after the answer.
 */
export async function untilTimeout<Value>(
  { calls }: LambdaRunner,
  context: LambdaContext,
  fn: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const nearTimeout = new AbortController();
  const timer = setTimeout(() => {
    nearTimeout.abort(new OncewardError("ABORTED", `The invocation ends in ${RESERVED_MS} ms.`));
  }, context.getRemainingTimeInMillis() - RESERVED_MS);
  try {
    return await fn(nearTimeout.signal);
  } finally {
    clearTimeout(timer);
    const released = [...(calls?.background ?? [])];
    if (released.length > 0) await endedWithin(Promise.allSettled(released), RELEASE_MS);
  }
}
