import { randomBytes } from "node:crypto";
import type { Message } from "@bufbuild/protobuf";
import type { Logger } from "pino";
import type { Authenticator } from "../auth/authenticate.ts";
import type { Deadline } from "../domain/deadline.ts";
import { MAX_MESSAGE_BYTES } from "../domain/limits.ts";
import { CATALOGUE, Refusal } from "../domain/refusal.ts";
import type { Principal } from "../domain/tenant.ts";
import type { Call } from "../services/call.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Route } from "./route.ts";
import { parseTimeoutMs, TIMEOUT_HEADER } from "./timeouts.ts";

/** A call as a transport brings it in. */
export interface IncomingCall {
  /** By lower-case name. */
  header(name: string): string | undefined;
  /** How large the message is on the wire, where the transport knows. */
  readonly messageBytes: number | undefined;
  /** @throws if the message can't be parsed. */
  read(): Message;
  /** Whether the caller has gone away already. */
  readonly cancelled: boolean;
  /** Aborts when the caller goes away. */
  readonly signal: AbortSignal;
}

/** Answers a call, or rejects with the Refusal that its caller is to see; never with anything else. */
export type Pipeline = (route: Route, incoming: IncomingCall) => Promise<Message>;

export interface PipelineOptions {
  readonly authenticator: Authenticator;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** For calls that don't say how long they wait. */
  readonly defaultTimeoutMs: number;
}

const SANE_REQUEST_ID = /^[\w.:-]{1,64}$/;

/**
 * What every call goes through, whatever transport it came by: request id, log, metrics, authentication, authorisation,
 * deadline, handler, errors.
 */
export function createPipeline({ authenticator, log, metrics, defaultTimeoutMs }: PipelineOptions): Pipeline {
  const nextRequestId = requestIds();

  async function handle(route: Route, incoming: IncomingCall, requestId: () => string): Promise<Message> {
    const timeoutMs = parseTimeoutMs(incoming.header(TIMEOUT_HEADER)) ?? defaultTimeoutMs;
    const deadline = new CallDeadline(incoming, performance.now() + timeoutMs);
    if (timeoutMs <= 0)
      throw new Refusal("DEADLINE_EXCEEDED", "The deadline had passed when the call arrived.");
    return beforeTimeout(timeoutMs, async () => {
      const principal = await authenticator.authenticate(incoming.header("authorization"), deadline);
      if (principal.role !== route.role) {
        throw new Refusal("ROLE_DENIED", `This RPC is for the role ${route.role}.`);
      }
      const call = new AuthenticatedCall(incoming, deadline, principal, (error) =>
        reportBug(error, requestId()),
      );
      return route.handle(readMessage(incoming), call);
    });
  }

  function reportBug(error: unknown, requestId: string): Refusal {
    log.error({ err: error, requestId }, "a call failed by a defect");
    const metadata = { request_id: requestId };
    return new Refusal("INTERNAL", "An internal error; the server's log has it.", { metadata, cause: error });
  }

  return async (route, incoming) => {
    const startedAtMs = performance.now();
    const sent = incoming.header("x-request-id");
    const requestId = sent !== undefined && SANE_REQUEST_ID.test(sent) ? () => sent : lazily(nextRequestId);
    const done = (code: string) => {
      const durationMs = performance.now() - startedAtMs;
      metrics.rpcDuration.observe({ method: route.method.name, code }, durationMs / 1000);
      if (log.isLevelEnabled("debug")) {
        log.debug({ method: route.method.name, code, durationMs, requestId: requestId() }, "call");
      }
    };
    try {
      const reply = await handle(route, incoming, requestId);
      done("OK");
      return reply;
    } catch (error) {
      const refusal = error instanceof Refusal ? error : reportBug(error, requestId());
      logUnavailable(refusal, requestId);
      done(CATALOGUE[refusal.reason]);
      throw refusal;
    }
  };

  /** What the platform team has to know of; other refusals are the caller's business. */
  function logUnavailable(refusal: Refusal, requestId: () => string): void {
    if (refusal.reason !== "DATABASE_UNAVAILABLE") return;
    log.warn({ err: refusal.cause, requestId: requestId() }, "the database did not answer");
  }
}

class CallDeadline implements Deadline {
  readonly #incoming: IncomingCall;
  readonly atMs: number;
  constructor(incoming: IncomingCall, atMs: number) {
    this.#incoming = incoming;
    this.atMs = atMs;
  }
  get cancelled(): boolean {
    return this.#incoming.cancelled;
  }
}

class AuthenticatedCall implements Call {
  readonly #incoming: IncomingCall;
  readonly atMs: number;
  readonly principal: Principal;
  readonly reportBug: (error: unknown) => Refusal;
  constructor(
    incoming: IncomingCall,
    deadline: Deadline,
    principal: Principal,
    reportBug: Call["reportBug"],
  ) {
    this.#incoming = incoming;
    this.atMs = deadline.atMs;
    this.principal = principal;
    this.reportBug = reportBug;
  }
  get cancelled(): boolean {
    return this.#incoming.cancelled;
  }
  get signal(): AbortSignal {
    return this.#incoming.signal;
  }
}

function readMessage(incoming: IncomingCall): Message {
  if (incoming.messageBytes !== undefined && incoming.messageBytes > MAX_MESSAGE_BYTES) {
    throw malformed(`must be at most ${MAX_MESSAGE_BYTES} bytes, is ${incoming.messageBytes}`);
  }
  try {
    return incoming.read();
  } catch (cause) {
    throw malformed("is not a message of the request's type", cause);
  }
}

function malformed(description: string, cause?: unknown): Refusal {
  const violations = [{ field: "message", description }];
  return new Refusal("INVALID_REQUEST", `The message ${description}.`, { violations, cause });
}

/** Rejects when the time is up, whether or not the work goes on: a write that was sent may still have its effect. */
function beforeTimeout<Reply>(timeoutMs: number, work: () => Promise<Reply>): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const metadata = { effect: "unknown" };
      reject(
        new Refusal("DEADLINE_EXCEEDED", "The deadline passed while the call was under way.", { metadata }),
      );
    }, timeoutMs);
    work()
      .then(resolve, reject)
      .finally(() => clearTimeout(timer));
  });
}

function requestIds(): () => string {
  const prefix = randomBytes(6).toString("base64url");
  let count = 0;
  return () => `${prefix}-${(++count).toString(36)}`;
}

function lazily<Value>(make: () => Value): () => Value {
  let made: Value | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
