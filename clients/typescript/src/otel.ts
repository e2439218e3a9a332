/**
 * `@onceward/client/otel`: OpenTelemetry spans for `run`, `claim` and `complete`.
 *
 * ```ts
 * import { trace } from "@opentelemetry/api";
 * import { createOnceward } from "@onceward/client";
 * import { tracing } from "@onceward/client/otel";
 *
 * const onceward = createOnceward({ address, apiKey, trace: tracing(trace.getTracer("charges")) });
 * ```
 *
 * @module
 */

import type { Span, Tracer } from "@opentelemetry/api";
import { OncewardError } from "./errors/errors.ts";
import type { Trace } from "./run/events.ts";

/** SpanStatusCode.ERROR. Its import would be the only one that is more than types. */
const STATUS_ERROR = 2;

/**
 * Spans of the tracer: `onceward.run` around the whole, and within it `onceward.claim`, what the function itself traces, and
 * `onceward.complete`.
 *
 * Attributes: `onceward.namespace`; of a run `onceward.outcome`, the type of its last event, and `onceward.attempt`; of one
 * that fails `error.type`, a reason or an error's name. Keys, values and error messages are never among them.
 */
export function tracing(tracer: Tracer): Trace {
  return (name, attributes, work) =>
    tracer.startActiveSpan(`onceward.${name}`, { attributes }, async (span) => {
      try {
        return await work((facts) => span.setAttributes(facts));
      } catch (error) {
        markFailed(span, error);
        throw error;
      } finally {
        span.end();
      }
    });
}

function markFailed(span: Span, error: unknown): void {
  const type = error instanceof OncewardError ? error.reason : error instanceof Error ? error.name : "Error";
  span.setAttribute("error.type", type);
  span.setStatus({ code: STATUS_ERROR });
}
