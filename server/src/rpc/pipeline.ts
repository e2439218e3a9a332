import { randomBytes } from "node:crypto";
import type { Message } from "@bufbuild/protobuf";
import type { Logger } from "pino";
import type { Admission } from "../admission/admission.ts";
import type { Authenticator } from "../auth/authenticate.ts";
import type { Deadline } from "../domain/deadline.ts";
import { MAX_MESSAGE_BYTES } from "../domain/limits.ts";
import { CATALOGUE, Refusal } from "../domain/refusal.ts";
import type { Principal } from "../domain/tenant.ts";
import type { Answer, Call } from "../services/call.ts";
import type { Denials } from "../services/denials.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { Refusals } from "./refusals.ts";
import type { Route } from "./route.ts";

/** A call as a transport brings it in. */
export interface IncomingCall {
  /** By lower-case name. */
  header(name: string): string | undefined;
  /** How long the caller is willing to wait; undefined if it didn't say. @throws Refusal if what it said is malformed. */
  readonly timeoutMs: number | undefined;
  /** How large the message is on the wire, where the transport knows. */
  readonly messageBytes: number | undefined;
  /** @throws if the message can't be parsed. */
  read(): Message;
  /** Whether the caller has gone away already. */
  readonly cancelled: boolean;
  /** Aborts when the caller goes away. */
  readonly signal: AbortSignal;
}

/**
 * Answers a call with its reply as `encode` makes it for the transport, or rejects with the Refusal that its caller is to
 * see; never with anything else.
 */
export type Pipeline = <Reply>(
  route: Route,
  incoming: IncomingCall,
  encode: (reply: Message) => Reply,
) => Promise<Reply>;

export interface PipelineOptions {
  readonly authenticator: Authenticator;
  readonly admission: Pick<Admission, "enter">;
  readonly denials: Pick<Denials, "note">;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** For calls that don't say how long they wait. */
  readonly defaultTimeoutMs: number;
}

const SANE_REQUEST_ID = /^[\w.:-]{1,64}$/;

/**
 * What every call goes through, whatever transport it came by: request id, log, metrics, authentication, authorisation,
 * admission, deadline, handler, errors.
 */
export function createPipeline(options: PipelineOptions): Pipeline {
  const { authenticator, admission, log, metrics, defaultTimeoutMs } = options;
  const nextRequestId = requestIds();

  async function handle(route: Route, incoming: IncomingCall, refusals: Refusals): Promise<Message> {
    const timeoutMs = incoming.timeoutMs ?? defaultTimeoutMs;
    const deadline = new CallDeadline(incoming, performance.now() + timeoutMs);
    if (timeoutMs <= 0)
      throw new Refusal("DEADLINE_EXCEEDED", "The deadline had passed when the call arrived.");
    const credential = incoming.header("authorization");
    const known = authenticator.recognize(credential);
    const answer =
      known === undefined
        ? authenticator
            .authenticate(credential, deadline)
            .then((principal) => answerTo(principal, route, incoming, deadline, refusals))
        : answerTo(known, route, incoming, deadline, refusals);
    return answer instanceof Promise ? beforeTimeout(timeoutMs, answer) : answer;
  }

  function answerTo(
    principal: Principal,
    route: Route,
    incoming: IncomingCall,
    deadline: Deadline,
    refusals: Refusals,
  ): Answer<Message> {
    refusals.principal = principal;
    authorize(principal, route);
    const again = async () => {
      const now = await authenticator.authenticate(incoming.header("authorization"), deadline);
      refusals.principal = now;
      authorize(now, route);
      return new AuthenticatedCall(incoming, deadline, now, refusals, again);
    };
    const call = new AuthenticatedCall(incoming, deadline, principal, refusals, again);
    const leave = admission.enter(principal);
    const work = () => route.handle(readMessage(incoming), call);
    return leave === undefined ? work() : leaving(leave, work);
  }

  return async (route, incoming, encode) => {
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
    const refusals = new Refusals(options, route, requestId);
    try {
      const reply = encode(await handle(route, incoming, refusals));
      done("OK");
      return reply;
    } catch (error) {
      const refusal = refusals.of(error);
      logUnavailable(options, refusal, requestId);
      done(CATALOGUE[refusal.reason]);
      throw refusal;
    }
  };
}

/** @throws Refusal TENANT_SUSPENDED, ROLE_DENIED. */
function authorize(principal: Principal, route: Route): void {
  if (principal.role !== "OPERATOR" && principal.tenant.suspended) {
    throw new Refusal("TENANT_SUSPENDED", "The operator has suspended this tenant.");
  }
  if (principal.role !== route.role) {
    throw new Refusal("ROLE_DENIED", `This RPC is for the role ${route.role}.`);
  }
}

/** What the platform team has to know of; other refusals are the caller's business, or the tenant's. */
function logUnavailable({ log }: PipelineOptions, refusal: Refusal, requestId: () => string): void {
  if (refusal.reason !== "DATABASE_UNAVAILABLE") return;
  log.warn({ err: refusal.cause, requestId: requestId() }, "the database did not answer");
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
  readonly #refusals: Refusals;
  readonly atMs: number;
  readonly principal: Principal;
  readonly again: () => Promise<Call>;
  constructor(
    incoming: IncomingCall,
    deadline: Deadline,
    principal: Principal,
    refusals: Refusals,
    again: () => Promise<Call>,
  ) {
    this.#incoming = incoming;
    this.#refusals = refusals;
    this.atMs = deadline.atMs;
    this.principal = principal;
    this.again = again;
  }
  refusalOf(error: unknown): Refusal {
    return this.#refusals.of(error);
  }
  get requestId(): string {
    return this.#refusals.requestId();
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

async function leaving<Reply>(leave: () => void, work: () => Answer<Reply>): Promise<Reply> {
  try {
    return await work();
  } finally {
    leave();
  }
}

/** Rejects when the time is up, whether or not the work goes on: a write that was sent may still have its effect. */
function beforeTimeout<Reply>(timeoutMs: number, work: Promise<Reply>): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const metadata = { effect: "unknown" };
      reject(
        new Refusal("DEADLINE_EXCEEDED", "The deadline passed while the call was under way.", { metadata }),
      );
    }, timeoutMs);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
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
