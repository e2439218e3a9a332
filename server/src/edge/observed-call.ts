import { randomBytes } from "node:crypto";
import { Code } from "@connectrpc/connect";
import type { Logger } from "pino";
import { CATALOGUE, type Refusal } from "../domain/refusal.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Denials } from "./denials.ts";
import { MessageRefused } from "./grpc-messages.ts";
import { Refusals } from "./refusals.ts";
import type { Route } from "./route.ts";

/** A call as metrics, log and audit see it, from its headers to its answer. */
export interface ObservedCall {
  readonly refusals: Refusals;
  /** Counts the call as answered. */
  answered(): void;
  /** Counts the call as refused; returns what its caller may see of an error, and whoever called throws that. */
  refused(error: unknown): Refusal | MessageRefused;
}

export interface ObservedCallOptions {
  readonly denials: Pick<Denials, "note">;
  readonly log: Logger;
  readonly metrics: Pick<Metrics, "rpcDuration">;
}

const SANE_REQUEST_ID = /^[\w.:-]{1,64}$/;

/** Returns what begins to observe a call, given the request id that it was sent with. */
export function createCallObserver(
  options: ObservedCallOptions,
): (route: Route, sentRequestId: string | undefined) => ObservedCall {
  const { log, metrics } = options;
  const nextRequestId = requestIds();

  return (route, sent) => {
    const startedAtMs = performance.now();
    const requestId = sent !== undefined && SANE_REQUEST_ID.test(sent) ? () => sent : lazily(nextRequestId);
    const refusals = new Refusals(options, route, requestId);
    const done = (code: string) => {
      const durationMs = performance.now() - startedAtMs;
      const { name: method, parent } = route.method;
      metrics.rpcDuration.observe({ service: parent.name, method, code }, durationMs / 1000);
      if (log.isLevelEnabled("debug")) {
        log.debug({ service: parent.name, method, code, durationMs, requestId: requestId() }, "call");
      }
    };
    return {
      refusals,
      answered: () => done("OK"),
      refused(error) {
        if (error instanceof MessageRefused) {
          done(codeName(error.code));
          return error;
        }
        const refusal = refusals.of(error);
        // The platform team has to know of it; other refusals are the caller's business, or the tenant's.
        if (refusal.reason === "DATABASE_UNAVAILABLE")
          log.warn({ err: refusal.cause, requestId: requestId() }, "the database did not answer");
        done(CATALOGUE[refusal.reason]);
        return refusal;
      },
    };
  };
}

/** Returns a code's name as the catalogue writes it: INVALID_ARGUMENT for InvalidArgument. */
function codeName(code: Code): string {
  return Code[code].replace(/(?<=[a-z])[A-Z]/g, "_$&").toUpperCase();
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
