import { AsyncLocalStorage } from "node:async_hooks";
import type { Logger } from "pino";

/** Attributes of spans and their events. Never keys, results, credentials or messages of errors. */
export type SpanAttributes = Readonly<Record<string, string | number>>;

/** Identifies a span within and outside this process. */
export interface SpanIds {
  readonly traceId: string;
  readonly spanId: string;
  /** Bit 0: the trace is sampled. */
  readonly traceFlags: number;
}

/** How a call ended: with a gRPC code's name, and the reason of a refusal or the outcome of its operation. */
export interface CallOutcome {
  readonly code: string;
  readonly outcome?: string | undefined;
  readonly reason?: string | undefined;
}

/** The span of a call, or of an item of a batch. */
export interface CallSpan {
  readonly ids: SpanIds;
  /** Whether the span is sampled and has not ended. Otherwise everything but `ids` is ignored. */
  readonly isRecording: boolean;
  readonly hasEnded: boolean;
  setAttributes(attributes: SpanAttributes): void;
  addEvent(name: string, attributes?: SpanAttributes): void;
  /** Links the span to another one. */
  addLink(ids: SpanIds): void;
  end(outcome: CallOutcome): void;
}

/** The span of a statement. */
export interface StatementSpan {
  /** Ends the span, as failed if there is an error: SQLSTATE, or the reason of a refusal. */
  end(error?: { readonly type: string; readonly sqlState?: string }): void;
}

/** A call that arrives. */
export interface TracedCall {
  readonly system: "grpc" | "connectrpc";
  /** `package.Service/Method`. */
  readonly method: string;
  /** Returns a header by its name in lower case. */
  readonly header: (name: string) => string | undefined;
}

/**
 * Makes spans. There is one per replica, and none while tracing is off: then no part of the replica is wrapped.
 */
export interface Tracing {
  /** Starts the span of a call: a child of the span that the call's `traceparent` names, if that is well-formed. */
  startCall(call: TracedCall): CallSpan;
  /**
   * Starts the span of an item of a batch that has a trace context of its own, linked to the batch's span. Returns undefined if the
   * context is malformed or not sampled.
   */
  startItem(
    item: Pick<TracedCall, "method"> & { readonly traceparent: string },
    batch: CallSpan | undefined,
  ): CallSpan | undefined;
  /**
   * Starts the span of a statement: a child of the first of the calls whose operations it carries, and linked to and from the others.
   * Returns undefined if none of the calls is recorded.
   */
  startStatement(
    statement: string,
    operations: number,
    calls: readonly CallSpan[] | undefined,
  ): StatementSpan | undefined;
  /** Exports the spans that have ended, for at most `limitMs`, and then makes no more. Never rejects. */
  close(limitMs: number): Promise<void>;
}

export interface TracingOptions {
  /** Identifies the replica among others of the service. */
  readonly instanceId: string;
  readonly version: string;
  /** The database's attributes on the spans of statements. */
  readonly database: SpanAttributes;
  readonly log: Logger;
  /** Called for every export that failed: its spans are dropped. */
  readonly onExportFailed: () => void;
}

/** Opens the tracing of a replica. */
export type OpenTracing = (options: TracingOptions) => Tracing;

/**
 * The calls on whose behalf the code runs: one, or, within a statement, all whose operations the statement carries. Undefined in
 * background tasks, and everywhere while tracing is off.
 */
export const activeCalls = new AsyncLocalStorage<readonly CallSpan[] | undefined>();

/** Returns the span of the call on whose behalf the code runs, if it is recorded. */
export function recordedCall(): CallSpan | undefined {
  const calls = activeCalls.getStore();
  const [first] = calls ?? [];
  return first?.isRecording && calls?.length === 1 ? first : undefined;
}

/**
 * Returns the fields by which the log lines of a trace are found: none outside calls. A connection or timer that a call created
 * keeps the call as its active one, also after the call has ended.
 */
export function traceFields(): { readonly trace_id?: string; readonly span_id?: string } {
  const calls = activeCalls.getStore();
  const [first] = calls ?? [];
  if (first === undefined || calls?.length !== 1 || first.hasEnded) return {};
  return { trace_id: first.ids.traceId, span_id: first.ids.spanId };
}
