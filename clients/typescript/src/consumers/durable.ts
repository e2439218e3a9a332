import { AmbiguousError } from "../errors/errors.ts";
import { base64Url, sha256 } from "../wire/bytes.ts";
import { type LambdaContext, type LambdaRunner, untilTimeout } from "./lambda-timeout.ts";

/** The part of a durable execution's context that the adapter reads; `DurableContext` of AWS's SDK has it. */
export interface DurableContext {
  readonly lambdaContext: LambdaContext;
  readonly executionContext: { readonly durableExecutionArn: string };
}

/** The context of a handler, in a durable execution or not. */
export type AnyContext = LambdaContext | DurableContext;

interface AttemptOptions {
  readonly signal: AbortSignal;
  readonly claimId?: string;
  readonly owner?: string;
  readonly acceptAmbiguous?: boolean;
}

/**
 * Runs an invocation. A durable execution is replayed from its beginning after each suspension: all its replays have one claim
 * id, and it continues a claim of its own that has become ambiguous meanwhile.
 */
export function runDurably<Value>(
  onceward: LambdaRunner,
  context: AnyContext,
  run: (attempt: AttemptOptions) => Promise<Value>,
): Promise<Value> {
  if (!("executionContext" in context)) return untilTimeout(onceward, context, (signal) => run({ signal }));
  const arn = context.executionContext.durableExecutionArn;
  // An ARN may be longer than an id.
  const execution = `durable:${base64Url(sha256(arn))}`;
  return untilTimeout(onceward, context.lambdaContext, async (signal) => {
    const attempt = { signal, claimId: execution, owner: execution };
    try {
      return await run(attempt);
    } catch (error) {
      if (!(error instanceof AmbiguousError) || error.owner !== execution) throw error;
      return await run({ ...attempt, acceptAmbiguous: true });
    }
  });
}
