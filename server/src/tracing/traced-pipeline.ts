import { isMessage, type Message } from "@bufbuild/protobuf";
import type { Answer } from "../access/call.ts";
import { CATALOGUE, Refusal } from "../domain/refusal.ts";
import type { Principal } from "../domain/tenant.ts";
import {
  ClaimResponseSchema,
  CompleteResponseSchema,
  ReleaseResponseSchema,
} from "../gen/onceward/v1/idempotency_pb.ts";
import { codeName } from "../records/batch/batch-errors.ts";
import { activeCalls, type CallOutcome, type CallSpan, type Tracing } from "../telemetry/tracing.ts";
import { FailedCall, ProtocolError } from "../transport/errors.ts";
import type { IncomingCall, Pipeline } from "../transport/pipeline.ts";
import type { ReceivedMessage } from "../transport/receive/read-message.ts";

/** Wraps a pipeline: each call is a span, and is handled with the span as its active call. */
export function tracePipeline(pipeline: Pipeline, tracing: Tracing): Pipeline {
  return {
    ...pipeline,
    answer(route, incoming, encode) {
      const span = tracing.startCall({
        system: incoming.header("content-type")?.startsWith("application/grpc") ? "grpc" : "connectrpc",
        method: route.path.slice(1),
        header: (name) => incoming.header(name),
      });
      return activeCalls.run([span], async () => {
        try {
          let outcome: string | undefined;
          const reply = await pipeline.answer(route, new TracedCall(incoming, span), (message) => {
            outcome = outcomeOfReply(message);
            return encode(message);
          });
          span.end({ code: "OK", outcome });
          return reply;
        } catch (error) {
          span.end(outcomeOf(error));
          throw error;
        }
      });
    },
  };
}

/** Returns the outcome of a Claim as the contract names it, and of a Complete or Release as metrics do; of others, undefined. */
export function outcomeOfReply(reply: Message | undefined): string | undefined {
  if (isMessage(reply, ClaimResponseSchema)) {
    const { case: outcome } = reply.outcome;
    return outcome && ClaimResponseSchema.field[outcome].name;
  }
  if (isMessage(reply, CompleteResponseSchema)) return reply.alreadyCompleted ? "repeated" : "completed";
  return isMessage(reply, ReleaseResponseSchema) ? "released" : undefined;
}

function outcomeOf(failure: unknown): CallOutcome {
  const error = failure instanceof FailedCall ? failure.error : failure;
  if (error instanceof Refusal) return { code: CATALOGUE[error.reason], reason: error.reason };
  return { code: error instanceof ProtocolError ? codeName(error.code) : "UNKNOWN" };
}

/** A call whose span gets the tenant's name as soon as the caller is authenticated. */
class TracedCall implements IncomingCall {
  readonly #incoming: IncomingCall;
  readonly #span: CallSpan;

  constructor(incoming: IncomingCall, span: CallSpan) {
    this.#incoming = incoming;
    this.#span = span;
  }

  get peer(): string | undefined {
    return this.#incoming.peer;
  }

  header(name: string): string | undefined {
    return this.#incoming.header(name);
  }

  get sessionCookie(): string | undefined {
    return this.#incoming.sessionCookie;
  }

  get cancelled(): boolean {
    return this.#incoming.cancelled;
  }

  get timeoutMs(): number | undefined {
    return this.#incoming.timeoutMs;
  }

  get signal(): AbortSignal {
    return this.#incoming.signal;
  }

  receive(principal: Principal): Answer<ReceivedMessage> {
    if (principal.role !== "OPERATOR") this.#span.setAttributes({ "onceward.tenant": principal.tenant.name });
    return this.#incoming.receive(principal);
  }
}
