import { randomBytes } from "node:crypto";
import { Code } from "@connectrpc/connect";
import type { Logger } from "pino";
import { CATALOGUE, Refusal } from "../domain/refusal.ts";
import type { Principal } from "../domain/tenant.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Denials } from "./denials.ts";
import { ProtocolError } from "./errors.ts";
import type { Route } from "./route.ts";

export interface CallObserverOptions {
  readonly denials: Pick<Denials, "note">;
  readonly log: Logger;
  readonly metrics: Pick<Metrics, "rpcDuration">;
}

interface CallObserver extends CallObserverOptions {
  readonly nextRequestId: () => string;
}

/** Request ids that are logged as the client sent them. */
const VALID_REQUEST_ID = /^[\w.:-]{1,64}$/;

/**
 * Returns a function that starts to observe a call, given its route and the request id that its client sent.
 */
export function createCallObserver(
  options: CallObserverOptions,
): (route: Route, sentRequestId: string | undefined) => ObservedCall {
  const observer: CallObserver = { ...options, nextRequestId: createRequestIds() };
  return (route, sentRequestId) => new ObservedCall(observer, route, sentRequestId);
}

/** Reports a call to the metrics, the log and the audit, from its headers to its answer. */
export class ObservedCall {
  readonly #observer: CallObserver;
  readonly #startedAtMs = performance.now();
  /** Undefined until it is used, if the client sent none: few calls need one. */
  #requestId: string | undefined;
  readonly route: Route;
  /** Set as soon as the caller is known, so that a denial has its actor. */
  principal: Principal | undefined;

  constructor(observer: CallObserver, route: Route, sentRequestId: string | undefined) {
    this.#observer = observer;
    this.route = route;
    if (sentRequestId !== undefined && VALID_REQUEST_ID.test(sentRequestId)) this.#requestId = sentRequestId;
  }

  get requestId(): string {
    this.#requestId ??= this.#observer.nextRequestId();
    return this.#requestId;
  }

  /** Counts the call as successful. */
  answered(): void {
    this.#finish("OK");
  }

  /** Counts the call as failed; returns the error that its caller may see. */
  failed(error: unknown): Refusal | ProtocolError {
    if (error instanceof ProtocolError) {
      this.#finish(codeName(error.code));
      return error;
    }
    const refusal = this.toRefusal(error);
    // The platform team must know of it. Other refusals concern the caller or the tenant.
    if (refusal.reason === "DATABASE_UNAVAILABLE") {
      this.#observer.log.warn(
        { err: refusal.cause, requestId: this.requestId },
        "the database did not answer",
      );
    }
    this.#finish(CATALOGUE[refusal.reason]);
    return refusal;
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
      log.debug({ service: parent.name, method, code, durationMs, requestId: this.requestId }, "call");
    }
  }

  #recordDenial(refusal: Refusal): void {
    const { principal, requestId } = this;
    if (principal === undefined) return;
    this.#observer.denials.note({ principal, action: this.route.method.name, refusal, requestId });
  }

  #internalError(error: unknown): Refusal {
    const { requestId } = this;
    this.#observer.log.error({ err: error, requestId }, "a call failed by a defect");
    const metadata = { request_id: requestId };
    return new Refusal("INTERNAL", "An internal error; the server's log has it.", { metadata, cause: error });
  }
}

/** Returns a code's name as the catalogue writes it: INVALID_ARGUMENT for InvalidArgument. */
function codeName(code: Code): string {
  return Code[code].replace(/(?<=[a-z])[A-Z]/g, "_$&").toUpperCase();
}

function createRequestIds(): () => string {
  const prefix = randomBytes(6).toString("base64url");
  let count = 0;
  return () => `${prefix}-${(++count).toString(36)}`;
}
