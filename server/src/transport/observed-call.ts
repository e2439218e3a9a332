import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import type { Deadline } from "../domain/operation.ts";
import { CATALOGUE, Refusal } from "../domain/refusal.ts";
import type { Principal } from "../domain/tenant.ts";
import { codeName } from "../records/batch/batch-errors.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { UnansweredLog } from "./bounds/unanswered.ts";
import type { Denials } from "./denials.ts";
import { FailedCall, ProtocolError, REQUEST_ID_HEADER } from "./errors.ts";
import type { Route } from "./route.ts";

/** The headers of a call, or of a stream of calls. */
export interface CallHead {
  /** The address of the other end of the connection; undefined if the connection has ended. */
  readonly peer: string | undefined;
  /** Returns a header by its name in lower case. */
  header(name: string): string | undefined;
  /**
   * The value of the console's session cookie, if the request is one of those that may use it; undefined on transports
   * that browsers do not use. Looked at only without an `authorization` header.
   */
  readonly sessionCookie: string | undefined;
  /** Whether the caller has left already. */
  readonly cancelled: boolean;
  /** Aborts when the caller leaves. */
  readonly signal: AbortSignal;
}

export interface CallObserverOptions {
  readonly denials: Pick<Denials, "note">;
  readonly log: Logger;
  readonly metrics: Pick<Metrics, "rpcDuration">;
}

/** What all calls of a pipeline report to. */
export interface CallObserver extends CallObserverOptions {
  readonly unanswered: UnansweredLog;
}

/** Request ids that are logged as the client sent them. */
const VALID_REQUEST_ID = /^[\w.:-]{1,64}$/;

/** Reports a call to the metrics, the log and the audit, from its headers to its answer; it is the call's deadline, too. */
export class ObservedCall implements Deadline {
  readonly #observer: CallObserver;
  readonly #startedAtMs = performance.now();
  /** Undefined until it is used, if the client sent none: few calls need one. */
  #requestId: string | undefined;
  readonly route: Route;
  readonly head: CallHead;
  /** Set as soon as the caller's timeout is read. */
  atMs = Number.NaN;
  /** When the message had arrived, in milliseconds of `performance.now()`; NaN until then. */
  receivedAtMs = Number.NaN;
  /** Set as soon as the caller is known, so that a denial has its actor. */
  principal: Principal | undefined;

  constructor(observer: CallObserver, route: Route, head: CallHead) {
    this.#observer = observer;
    this.route = route;
    this.head = head;
    const sentRequestId = head.header(REQUEST_ID_HEADER);
    if (sentRequestId !== undefined && VALID_REQUEST_ID.test(sentRequestId)) this.#requestId = sentRequestId;
  }

  get cancelled(): boolean {
    return this.head.cancelled;
  }

  get requestId(): string {
    // Random, because callers see it: a number would show them the calls of other tenants.
    this.#requestId ??= randomUUID();
    return this.#requestId;
  }

  /** Counts the call as successful. */
  answered(): void {
    this.#finish("OK");
  }

  /** Counts the call as failed; returns the error that its caller may see, with the request id. */
  failed(error: unknown): FailedCall {
    if (error instanceof ProtocolError) {
      this.#finish(codeName(error.code));
      return new FailedCall(error, this.requestId);
    }
    const refusal = this.toRefusal(error);
    // The platform team must know of it. Other refusals concern the caller or the tenant.
    if (refusal.reason === "DATABASE_UNAVAILABLE") {
      this.#observer.unanswered.note(refusal.cause, this.#identity());
    }
    this.#finish(CATALOGUE[refusal.reason]);
    return new FailedCall(refusal, this.requestId);
  }

  /**
   * Returns the refusal that the caller may see. Logs a bug under the request id, and records a denial in the
   * audit.
   */
  toRefusal(error: unknown): Refusal {
    if (!(error instanceof Refusal)) return this.#internalError(error);
    if (CATALOGUE[error.reason] === "PERMISSION_DENIED") this.#recordDenial(error);
    return error;
  }

  #finish(code: string): void {
    const { metrics, log } = this.#observer;
    const durationMs = performance.now() - this.#startedAtMs;
    const { name: method, parent } = this.route.method;
    metrics.rpcDuration.observe({ service: parent.name, method, code }, durationMs / 1000);
    if (log.isLevelEnabled("debug")) {
      log.debug({ service: parent.name, method, code, durationMs, ...this.#identity() }, "call");
    }
  }

  /** Returns the fields of every log line about the call. */
  #identity(): Readonly<Record<string, string | undefined>> {
    const { principal } = this;
    return {
      requestId: this.requestId,
      tenant: principal === undefined || principal.role === "OPERATOR" ? undefined : principal.tenant.name,
      peer: this.head.peer,
    };
  }

  #recordDenial(refusal: Refusal): void {
    const { principal, requestId } = this;
    if (principal === undefined) return;
    this.#observer.denials.note({ principal, action: this.route.method.name, refusal, requestId });
  }

  #internalError(error: unknown): Refusal {
    const { requestId } = this;
    this.#observer.log.error({ err: error, ...this.#identity() }, "a call failed by a defect");
    const metadata = { request_id: requestId };
    return new Refusal("INTERNAL", "An internal error; the server's log has it.", { metadata, cause: error });
  }
}
