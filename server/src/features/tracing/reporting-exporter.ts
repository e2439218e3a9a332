import { type ExportResult, ExportResultCode } from "@opentelemetry/core";
import type { ReadableSpan, SpanExporter } from "@opentelemetry/sdk-trace-base";
import type { Logger } from "pino";
import type { TracingOptions } from "../../core/telemetry/tracing.ts";

/** While a collector is down every export fails. */
const WARNING_INTERVAL_MS = 60_000;
/** A message of the SDK may contain an answer of the collector, of any length. */
const MAX_PROBLEM_LENGTH = 200;

/**
 * Wraps an exporter: its failures are counted, and logged at most once a minute. The SDK gets every export reported as successful,
 * because it would only log the failure, each time and with the collector's answer.
 */
export function createReportingExporter(
  exporter: SpanExporter,
  { log, onExportFailed }: Pick<TracingOptions, "log" | "onExportFailed">,
): SpanExporter {
  const warn = createRareWarning(log, "exporting spans failed; they are dropped");
  return {
    export(spans: ReadableSpan[], onResult: (result: ExportResult) => void): void {
      exporter.export(spans, ({ code, error }) => {
        if (code !== ExportResultCode.SUCCESS) {
          onExportFailed();
          warn(error?.message ?? "no reason given");
        }
        onResult({ code: ExportResultCode.SUCCESS });
      });
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => await exporter.forceFlush?.(),
  };
}

/** Returns a function that logs a problem, at most once a minute, with the number of problems since the last line. */
export function createRareWarning(log: Logger, message: string): (problem: string) => void {
  let warnedAtMs = Number.NEGATIVE_INFINITY;
  let problems = 0;
  return (problem) => {
    problems++;
    if (performance.now() - warnedAtMs < WARNING_INTERVAL_MS) return;
    log.warn({ problem: problem.slice(0, MAX_PROBLEM_LENGTH), problems }, message);
    warnedAtMs = performance.now();
    problems = 0;
  };
}
