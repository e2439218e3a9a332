import type { BatchHandler, Call } from "../calls/call.ts";
import { type OperationKind, Rejected, type Settled } from "../domain/operation.ts";
import { reasonName } from "../domain/refusal.ts";

/** Receives each operation that was answered, for the metrics. */
export type OnOperation = (kind: OperationKind, outcome: string, durationMs: number) => void;

export interface CountedOptions<Request, Response> {
  readonly kind: OperationKind;
  readonly onOperation: OnOperation;
  /** Returns the outcome of an operation as metrics name it. */
  readonly outcomeOf: (response: Response) => string;
  readonly handle: BatchHandler<Request, Response>;
}

/** Returns a handler that reports the outcome of each operation, also if it is an error. */
export function counted<Request, Response>({
  kind,
  onOperation,
  outcomeOf,
  handle,
}: CountedOptions<Request, Response>): BatchHandler<Request, Response> {
  function count(all: readonly Settled<Response>[], call: Call): readonly Settled<Response>[] {
    const durationMs = performance.now() - call.receivedAtMs;
    for (const each of all) {
      onOperation(kind, each instanceof Rejected ? reasonName(each.error) : outcomeOf(each), durationMs);
    }
    return all;
  }

  return (requests, call) => {
    const settled = handle(requests, call);
    return settled instanceof Promise ? settled.then((all) => count(all, call)) : count(settled, call);
  };
}
