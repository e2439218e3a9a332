import { create } from "@bufbuild/protobuf";
import type { Interceptor, Transport, UnaryRequest } from "@connectrpc/connect";
import {
  type BatchRequest,
  type BatchResponse,
  IdempotencyService,
} from "../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
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

/** The caller and the replica of recorded calls; a client's name is unique in a run. */
export interface Recording {
  readonly journal: Journal;
  readonly client: string;
  readonly replica: string;
  readonly tenant: string;
}

/** Counts the operations of this process, for their ids. */
let lastOperation = 0;

/**
 * Returns an interceptor for a client's transport that writes every attempt of an IdempotencyService RPC on
 * the wire to the journal, and each item of a batch as an operation.
 */
export function recordingInterceptor(recording: Recording): Interceptor {
  return (next) => async (request) => {
    if (request.stream || request.service.typeName !== IdempotencyService.typeName) return next(request);
    return recordAttempt(recording, request, () => next(request));
  };
}

/** Records the calls of a transport without interceptors; all must be IdempotencyService's. */
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

/** The recorded parts of a call: its method and its request. */
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
 * Records a call that interceptors don't record: an administrator's change of a record. Its answer is OK or
 * an error.
 *
 * @throws the error of the call.
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
    const ids = inBatch ? { id: `${call}.${index}`, batch: { id: call, index } } : { id: call };
    return [{ index, invocation: { ...ids, client, replica, tenant, namespace, key, request, invokedAtMs } }];
  });
}

function answerTo(asked: CallRequest["case"], reply: CallResponse | undefined, isComplete: boolean): Answer {
  if (!isComplete || reply === undefined)
    return { kind: "malformed", problem: "a batch's reply has other items" };
  return describeResponse(asked, reply);
}
