import { randomBytes } from "node:crypto";

/** A caller's trace context. */
export interface TraceContext {
  readonly traceId: string;
  readonly spanId: string;
  /** The header. */
  readonly traceparent: string;
}

/** Returns the context of a new trace. */
export function newTrace({ sampled }: { readonly sampled: boolean } = { sampled: true }): TraceContext {
  const traceId = randomBytes(16).toString("hex");
  const spanId = randomBytes(8).toString("hex");
  return { traceId, spanId, traceparent: `00-${traceId}-${spanId}-${sampled ? "01" : "00"}` };
}
