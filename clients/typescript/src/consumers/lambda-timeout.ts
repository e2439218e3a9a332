import { OncewardError } from "../errors/errors.ts";

/** The part of Lambda's context that the adapter reads; `Context` of `@types/aws-lambda` has it. */
export interface LambdaContext {
  /** Returns the time until the invocation's timeout, in milliseconds. */
  getRemainingTimeInMillis(): number;
}

/** Long enough for a release and the answer, short for the timeout of 3 s that Lambda sets by default. */
const RESERVED_MS = 500;

/** Calls `fn` with a signal that aborts, as ABORTED, half a second before the invocation's timeout. */
export async function untilTimeout<Value>(
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
  }
}
