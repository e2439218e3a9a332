import { create } from "@bufbuild/protobuf";
import type { Interceptor, Transport, UnaryRequest } from "@connectrpc/connect";
import {
  type BatchRequest,
  type BatchResponse,
  IdempotencyService,
} from "../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import type { Invocation, Journal } from "./journal.ts";
import {
  type CallRequest,
  type CallResponse,
  describeError,
  describeRequest,
  describeResponse,
  marksOf,
} from "./messages.ts";
import { type Answer, nowMs, type RecordName, type Request } from "./operation.ts";

/** Who calls, and whom; a client's name is given once in a whole run. */
export interface Recording {
  readonly journal: Journal;
  readonly client: string;
  readonly replica: string;
  readonly tenant: string;
}

/** Counts the operations of this process, so that each has an id of its own. */
let lastOperation = 0;

/**
 * For a client's transport: writes every attempt of an IdempotencyService RPC to the journal, as it went over the wire,
 * whoever made it (`api`, `calls` or `run`), and each item of a batch as an operation.
 */
export function recordingInterceptor(recording: Recording): Interceptor {
  return (next) => async (request) => {
    if (request.stream || request.service.typeName !== IdempotencyService.typeName) return next(request);
    return recordAttempt(recording, request, () => next(request));
  };
}

/** The same for a transport that takes no interceptors, of which every call is one of IdempotencyService. */
export function recordingTransport(transport: Transport, recording: Recording): Transport {
  return {
    unary(method, signal, timeoutMs, header, input, contextValues) {
      const message = create(method.input, input);
      const send = () => transport.unary(method, signal, timeoutMs, header, input, contextValues);
      return recordAttempt(recording, { method, message }, send);
    },
    stream: (...call) => transport.stream(...call),
  };
}

/** What is recorded of a call: which it is, and what it asks. */
type Attempt = Pick<UnaryRequest, "method" | "message">;

async function recordAttempt<Reply extends { readonly message: unknown }>(
  recording: Recording,
  attempt: Attempt,
  send: () => Promise<Reply>,
): Promise<Reply> {
  const asked = requestsOf(attempt);
  const invocations = invocationsOf(recording, attempt, asked);
  const { journal } = recording;
  journal.invoked(invocations.map(({ invocation }) => invocation));
  try {
    const response = await send();
    const returnedAtMs = nowMs();
    const answered = responsesOf(attempt, response.message);
    journal.returned(
      invocations.map(({ invocation: { id }, index }) => {
        const reply = answered[index];
        const answer = answerTo(asked[index]?.case, reply, asked.length === answered.length);
        return { id, answer, returnedAtMs, marks: reply === undefined ? [] : marksOf(reply) };
      }),
    );
    return response;
  } catch (error) {
    const returnedAtMs = nowMs();
    const answer = describeError(error);
    journal.returned(invocations.map(({ invocation: { id } }) => ({ id, answer, returnedAtMs, marks: [] })));
    throw error;
  }
}

/**
 * Records a call that no interceptor sees through: what an administrator does to a record. It is OK, or it failed.
 *
 * @throws what the call throws.
 */
export async function recordCall<Reply>(
  { journal, client, replica }: Recording,
  record: RecordName,
  request: Request,
  call: () => Promise<Reply>,
): Promise<Reply> {
  const id = `${client}-${++lastOperation}`;
  journal.invoked([{ ...record, id, client, replica, request, invokedAtMs: nowMs() }]);
  const returned = (answer: Answer, returnedAtMs: number) =>
    journal.returned([{ id, answer, returnedAtMs, marks: [] }]);
  try {
    const reply = await call();
    returned({ kind: "ok" }, nowMs());
    return reply;
  } catch (error) {
    returned(describeError(error), nowMs());
    throw error;
  }
}

function requestsOf({ method, message }: Attempt): readonly CallRequest[] {
  if (method.localName === "batch")
    return (message as unknown as BatchRequest).items.map(({ request }) => request);
  return [{ case: method.localName, value: message } as unknown as CallRequest];
}

function responsesOf({ method }: Attempt, message: unknown): readonly CallResponse[] {
  if (method.localName === "batch") return (message as BatchResponse).items.map(({ response }) => response);
  return [{ case: method.localName, value: message } as CallResponse];
}

function invocationsOf(
  { client, replica, tenant }: Recording,
  { method }: Attempt,
  asked: readonly CallRequest[],
): { readonly invocation: Invocation; readonly index: number }[] {
  const call = `${client}-${++lastOperation}`;
  const invokedAtMs = nowMs();
  return asked.flatMap((item, index) => {
    const request = describeRequest(item);
    if (request === undefined || item.value === undefined) return [];
    const { namespace, key } = item.value;
    const inBatch = method.localName === "batch";
    const place = inBatch ? { id: `${call}.${index}`, batch: { id: call, index } } : { id: call };
    return [
      { index, invocation: { ...place, client, replica, tenant, namespace, key, request, invokedAtMs } },
    ];
  });
}

function answerTo(asked: CallRequest["case"], reply: CallResponse | undefined, isComplete: boolean): Answer {
  if (!isComplete || reply === undefined)
    return { kind: "malformed", problem: "a batch's reply has other items" };
  return describeResponse(asked, reply);
}
