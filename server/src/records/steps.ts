import type { Admission } from "../access/admission.ts";
import { statementDeadline, withCurrentPrincipal, withLoadedPolicies } from "../access/authority.ts";
import type { BatchHandler, Call } from "../access/call.ts";
import {
  type Deadline,
  mapSettled,
  mapTogether,
  type OperationKind,
  Rejected,
  type Settled,
} from "../domain/operation.ts";
import { isRefusal } from "../domain/refusal.ts";
import type { Principal } from "../domain/tenant.ts";
import { counted, type NamedRecord, type OnOperation, type OperationHooks } from "./after-operation.ts";
import type { RecordId } from "./record.ts";

/** The steps of an RPC, in their order. `run` executes all requests at once; the others take one request each. */
export interface Steps<Request, Command, Outcome, Response> {
  readonly kind: OperationKind;
  /** Returns the outcome of an operation as metrics name it. */
  readonly outcomeOf: (response: Response) => string;
  readonly admit: (principal: Principal, namespace: string) => void;
  readonly parse: (request: Request, principal: Principal) => Command;
  readonly run: (commands: readonly Command[], deadline: Deadline) => Promise<readonly Settled<Outcome>[]>;
  readonly answer: (outcome: Outcome, command: Command, call: Call) => Response;
}

/** What the RPCs that settle or extend a claim use. */
export interface SettlingOptions<Records> {
  readonly records: Records;
  readonly admission: Pick<Admission, "countOperation">;
  /** Wakes the calls that wait for a record, on every replica, after it was settled here. */
  readonly onSettled: (name: string) => void;
  readonly usage: Pick<OperationHooks, "count">;
}

/** Returns a handler of many requests that takes each through the steps, and reports its outcome. */
export function handlerOf<Request extends NamedRecord, Command, Outcome, Response>(
  steps: Steps<Request, Command, Outcome, Response>,
  onOperation: OnOperation,
): BatchHandler<Request, Response> {
  const { kind, outcomeOf } = steps;
  return counted({ kind, onOperation, outcomeOf, handle: withCurrentPrincipal(forAll(steps)) });
}

/** Returns a handler that takes requests through the steps, for one principal. */
function forAll<Request extends NamedRecord, Command, Outcome, Response>(
  steps: Steps<Request, Command, Outcome, Response>,
): BatchHandler<Request, Response> {
  return async (requests, call) => {
    const parsed = mapSettled(requests, (request) => {
      steps.admit(call.principal, request.namespace);
      return steps.parse(request, call.principal);
    });
    const commands = await withLoadedPolicies(requests, parsed, call, steps.parse);
    const outcomes = await mapTogether(commands, (values) => steps.run(values, statementDeadline(call)));
    return mapSettled(outcomes, (outcome, index) => steps.answer(outcome, commands[index] as Command, call));
  };
}

/** Counts the refusals of superseded claims, and returns what each operation settled with. */
export function countFenced<Value>(
  usage: Pick<OperationHooks, "count">,
  commands: readonly { readonly id: RecordId }[],
  settled: readonly Settled<Value>[],
): readonly Settled<Value>[] {
  for (const [index, { id }] of commands.entries()) {
    const each = settled[index];
    if (each instanceof Rejected && isRefusal(each.error, "CLAIM_SUPERSEDED")) usage.count(id, "fenced");
  }
  return settled;
}
