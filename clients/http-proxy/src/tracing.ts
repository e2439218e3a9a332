import type { ProxyTracing } from "./opentelemetry.ts";

/**
 * Opens tracing as the server does: if OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set, or
 * OTEL_TRACES_EXPORTER is `otlp`, and nothing disables it. Otherwise returns undefined, and no module of OpenTelemetry is loaded.
 */
export async function openTracing(
  env: Readonly<Record<string, string | undefined>>,
  warn: (line: string) => void,
): Promise<ProxyTracing | undefined> {
  const exporter = env.OTEL_TRACES_EXPORTER;
  const endpoint = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || env.OTEL_EXPORTER_OTLP_ENDPOINT;
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === "true" || exporter === "none") return undefined;
  if (exporter !== "otlp" && !endpoint) return undefined;
  const { openTelemetry } = await import("./opentelemetry.ts");
  return openTelemetry(warn);
}
