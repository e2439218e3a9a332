import type { BatchHandler, Call } from "../calls/call.ts";
import { type OperationKind, Rejected, type Settled } from "../domain/operation.ts";
import { reasonName } from "../domain/refusal.ts";

/** The record that a request names, as it was sent: unchecked. */
export interface NamedRecord {
  readonly namespace: string;
  readonly key: string;
}

/** Receives each operation that was answered, for the metrics and the log; `named` is undefined if the request was not read. */
export type OnOperation = (
  kind: OperationKind,
  outcome: string,
  durationMs: number,
  named: NamedRecord | undefined,
  call: Call,
) => void;

export interface CountedOptions<Request, Response> {
  readonly kind: OperationKind;
  readonly onOperation: OnOperation;
  /** Returns the outcome of an operation as metrics name it. */
  readonly outcomeOf: (response: Response) => string;
  readonly handle: BatchHandler<Request, Response>;
}

/** Returns a handler that reports the outcome of each operation, also if it is an error. */
export function counted<Request extends NamedRecord, Response>({
  kind,
  onOperation,
  outcomeOf,
  handle,
}: CountedOptions<Request, Response>): BatchHandler<Request, Response> {
  function count(
    requests: readonly Settled<Request>[],
    all: readonly Settled<Response>[],
    call: Call,
  ): readonly Settled<Response>[] {
    const durationMs = performance.now() - call.receivedAtMs;
    for (const [index, each] of all.entries()) {
      const request = requests[index];
      const named = request instanceof Rejected ? undefined : request;
      const outcome = each instanceof Rejected ? reasonName(each.error) : outcomeOf(each);
      onOperation(kind, outcome, durationMs, named, call);
    }
    return all;
  }

  return (requests, call) => {
    const settled = handle(requests, call);
    return settled instanceof Promise
      ? settled.then((all) => count(requests, all, call))
      : count(requests, settled, call);
  };
}
