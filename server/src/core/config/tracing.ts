/** Returns whether tracing is on: an endpoint or the exporter is set, and nothing disables it. An empty variable counts as unset. */
export function isTracingOn(variables: {
  readonly OTEL_SDK_DISABLED?: boolean | undefined;
  readonly OTEL_TRACES_EXPORTER?: "otlp" | "none" | undefined;
  readonly OTEL_EXPORTER_OTLP_ENDPOINT?: string | undefined;
  readonly OTEL_EXPORTER_OTLP_TRACES_ENDPOINT?: string | undefined;
}): boolean {
  const { OTEL_SDK_DISABLED: disabled, OTEL_TRACES_EXPORTER: exporter } = variables;
  if (disabled === true || exporter === "none") return false;
  const endpoint = variables.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? variables.OTEL_EXPORTER_OTLP_ENDPOINT;
  return exporter === "otlp" || endpoint !== undefined;
}
