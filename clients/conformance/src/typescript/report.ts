import {
  AmbiguousError,
  CompletionError,
  InProgressError,
  NoEffectError,
  OncewardError,
  OutcomeUnknownError,
  type RunResult,
  TerminalError,
} from "../../../typescript/src/index.ts";
import { writeValue } from "./values.ts";

/** Returns what a run that resolved is in an outcome. */
export function reportResult(result: RunResult<unknown>): object {
  const { value, replayed, guarded, expiresAt } = result;
  const isoTime = Number.isNaN(expiresAt.getTime()) ? undefined : expiresAt.toISOString();
  const shared = { value: writeValue(value), replayed, guarded, ...(guarded && { expiresAt: isoTime }) };
  if (result.replayed) return shared;
  return { ...shared, attempt: result.attempt, fencingToken: `${result.fencingToken}` };
}

/** Returns what an error is in an outcome. */
export function reportError(error: unknown): object {
  if (error instanceof OncewardError) return { error: { ...describeError(error), ...describeKind(error) } };
  if (error instanceof TerminalError) {
    const { name, message, details } = error;
    return { terminal: { name, message, details: writeValue(details) } };
  }
  if (error instanceof OutcomeUnknownError) return { unknown: markedMessage(error) ?? error.message };
  if (error instanceof NoEffectError) return { noEffect: error.message };
  if (error instanceof Error && error.name === "TimeoutError") return { timeout: error.message };
  if (error instanceof Error && error.name === "AbortError") return { cancelled: true };
  return { thrown: error instanceof Error ? error.message : `${error}` };
}

/** Returns the message of the error that `claim.outcomeUnknown` was called with. */
function markedMessage({ cause }: OutcomeUnknownError): string | undefined {
  return cause instanceof Error ? cause.message : undefined;
}

function describeError(error: OncewardError): object {
  const { name, reason, code, metadata, violations, retryDelayMs, requestId, claim } = error;
  const token = claim?.fencingToken === undefined ? {} : { fencingToken: `${claim.fencingToken}` };
  return {
    class: name,
    reason,
    code,
    metadata,
    fields: violations.map(({ field }) => field),
    violations,
    retryDelayMs,
    requestId,
    ...(claim && { claim: { namespace: claim.namespace, key: claim.key, ...token } }),
  };
}

function describeKind(error: OncewardError): object {
  if (error instanceof InProgressError) return { owner: error.owner, attempt: error.attempt };
  if (error instanceof AmbiguousError) {
    const { owner, attempt, checkpoint } = error;
    return { owner, attempt, ...(checkpoint && { checkpoint: reportCheckpoint(checkpoint) }) };
  }
  if (error instanceof CompletionError) {
    const { stored, effect } = error;
    const ended =
      effect.status === "fulfilled" ? { value: writeValue(effect.value) } : reportError(effect.reason);
    return { stored, effect: ended };
  }
  return {};
}

/** Returns what a checkpoint is in an outcome. */
export function reportCheckpoint({
  name,
  state,
}: {
  readonly name: string;
  readonly state: unknown;
}): object {
  return { name, state: writeValue(state) };
}
