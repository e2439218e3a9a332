/** Headers of one connection (RFC 9110, 7.6.1): a proxy does not pass them on. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "upgrade",
]);

/** The headers that the upstream service gets from the proxy alone: a client's are dropped. */
export const OWN_HEADERS = {
  derivedKey: "onceward-derived-key",
  fencingToken: "onceward-fencing-token",
  attempt: "onceward-attempt",
} as const;
/** W3C's trace context: while tracing is on, the service gets that of the request's span in place of the client's. */
export const TRACE_HEADERS = ["traceparent", "tracestate"];
/** Names the call that Onceward refused, in its log; the guard sets it on the refusals that a client can do something about. */
export const REQUEST_ID = "onceward-request-id";
const OWN: ReadonlySet<string> = new Set(Object.values(OWN_HEADERS));

/**
 * Returns the headers to pass on, as names and values by turns, in their order and case.
 *
 * @param raw as `rawHeaders` of node:http.
 * @param without further names, in lower case.
 */
export function endToEnd(raw: readonly string[], without: readonly string[] = []): string[] {
  const named = valuesOf(raw, "connection").flatMap((value) => value.split(","));
  const dropped = new Set([...named.map((name) => name.trim().toLowerCase()), ...without]);
  return pairsOf(raw)
    .filter(([name]) => {
      const lower = name.toLowerCase();
      return !HOP_BY_HOP.has(lower) && !OWN.has(lower) && !dropped.has(lower);
    })
    .flat();
}

/** Returns the headers of an upgrade, which needs two of the connection. */
export function ofUpgrade(raw: readonly string[]): string[] {
  const upgrade = pairsOf(raw).filter(([name]) => /^(connection|upgrade)$/i.test(name));
  return [...endToEnd(raw), ...upgrade.flat()];
}

/** Returns names and values as pairs. */
export function pairsOf(raw: readonly string[]): readonly [name: string, value: string][] {
  return Array.from({ length: raw.length / 2 }, (_, index) => [
    raw[index * 2] ?? "",
    raw[index * 2 + 1] ?? "",
  ]);
}

function valuesOf(raw: readonly string[], name: string): readonly string[] {
  return pairsOf(raw).flatMap(([of, value]) => (of.toLowerCase() === name ? [value] : []));
}
