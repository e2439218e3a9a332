/** `@onceward/http-proxy`: a reverse proxy that guards an unmodified HTTP service. `onceward http-proxy` runs it. */

export { ConfigError, configSchema, MAX_CONFIG_BYTES, parseConfig, type RouteConfig } from "./config.ts";
export type { ProxyTracing } from "./opentelemetry.ts";
export type { ProxyLoad, ProxyTls } from "./proxy.ts";
export { type RunningProxy, type RunOptions, startProxy } from "./run.ts";
export { openTracing } from "./tracing.ts";
