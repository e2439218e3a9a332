import type { HandlerResponse } from "./options.ts";

/**
 * The option `stores` for an endpoint of GraphQL, which answers errors with 200: a temporary failure would be replayed for the whole
 * retention.
 *
 * ```ts
 * idempotent(onceward, { namespace: "charges", caller, stores: storesGraphql }, (request) => yoga.fetch(request));
 * ```
 *
 * - Stored: a response without errors.
 * - Released, as an error of any handler: one with errors and no data. For money, `(response) => storesGraphql(response) || "unknown"`.
 * - Unknown: one with errors and data, of which a part happened; and a body that is not JSON.
 */
export function storesGraphql({ status, json }: HandlerResponse): boolean | "unknown" {
  if (status >= 300) return false;
  if (typeof json !== "object" || json === null) return "unknown";
  const { errors = [], data }: { errors?: unknown; data?: unknown } = json;
  if (Array.isArray(errors) && errors.length === 0) return true;
  return Object.values(data ?? {}).some((member) => member !== null) ? "unknown" : false;
}
