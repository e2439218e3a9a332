import { type DescMethodUnary, fromJson, type JsonObject, toJson } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { errorFromCall } from "../../../typescript/src/errors/mapping.ts";
import { IdempotencyService } from "../../../typescript/src/gen/onceward/v1/idempotency_pb.ts";
import {
  createTestingOnceward,
  type RefusalReason,
  type TestingOnceward,
  type TestingPolicy,
} from "../../../typescript/src/testing.ts";
import { reportError } from "./report.ts";

/** Calls of a service in memory, one after the other. */
export interface ServiceCase {
  readonly do: "service";
  readonly policy?: Partial<TestingPolicy>;
  readonly steps: readonly Step[];
}

type CallName = "claim" | "complete" | "release" | "extendLease" | "lookup";

type Step =
  | { readonly call: CallName; readonly request: JsonObject }
  | { readonly advanceMs: number }
  | { readonly failNext: CallName; readonly reason: RefusalReason }
  | { readonly loseNextReply: CallName };

/** The initial time of the service's clock. */
const NOW = new Date("2029-01-01T00:00:00Z");

/** Makes the calls of a case. Returns the answer to each. */
export async function performService({ policy = {}, steps }: ServiceCase): Promise<object> {
  await using testing = createTestingOnceward({ policy, now: NOW });
  const tokens: string[] = [];
  const answers: object[] = [];
  for (const step of steps) {
    if ("advanceMs" in step) testing.clock.advance(step.advanceMs);
    else if ("failNext" in step) testing.faults.failNext(step.failNext, step.reason);
    else if ("loseNextReply" in step) testing.faults.loseNextReply(step.loseNextReply);
    else answers.push(await call(testing, step.call, step.request, tokens));
  }
  return { answers };
}

/** Makes a call. Tokens are "#1", "#2", … in the order in which claims were granted. */
async function call(
  { transport }: TestingOnceward,
  name: CallName,
  { fencingToken, ...request }: JsonObject,
  tokens: string[],
): Promise<object> {
  const { input, output } = IdempotencyService.method[name] as DescMethodUnary;
  const token = `${fencingToken}`.startsWith("#")
    ? tokens[Number(`${fencingToken}`.slice(1)) - 1]
    : fencingToken;
  const json = token === undefined ? request : { ...request, fencingToken: token };
  const methods = createClient(IdempotencyService, transport);
  try {
    const response = toJson(output, await methods[name](fromJson(input, json) as never)) as JsonObject;
    const claimed = response.claimed as { fencingToken: string } | undefined;
    if (claimed !== undefined && !tokens.includes(claimed.fencingToken)) tokens.push(claimed.fencingToken);
    for (const part of [claimed, response.record as { fencingToken: string } | undefined]) {
      if (part !== undefined) part.fencingToken = `#${tokens.indexOf(part.fencingToken) + 1}`;
    }
    return { response };
  } catch (error) {
    return reportError(errorFromCall(error));
  }
}
