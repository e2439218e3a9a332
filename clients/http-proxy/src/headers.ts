import type { IncomingMessage } from "node:http";

/**
 * Headers of one connection (RFC 9110, 7.6.1): a proxy does not pass them on. Those that `Connection` names besides are passed on: a
 * client could take the caller, the key or the end of the body away from a request, after the proxy has read them.
 */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "http2-settings",
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
const OWN: ReadonlySet<string> = new Set(Object.values(OWN_HEADERS));
/** These frame a message, or name its target. */
const NEVER_TRAILERS = ["content-length", "transfer-encoding", "host"];
/** Protocols that carry requests of HTTP, which the proxy could not see: h2c, HTTP/2.0, TLS/1.3. */
const CARRIES_HTTP = /^\s*(?:h2|h3|http|tls)/i;

/**
 * Returns the headers to pass on, as names and values by turns, in their order and case.
 *
 * @param raw as `rawHeaders` of node:http.
 * @param without further names, in lower case.
 */
export function endToEnd(raw: readonly string[], without: readonly string[] = []): string[] {
  return pairsOf(raw)
    .filter(([name]) => {
      const lower = name.toLowerCase();
      return !HOP_BY_HOP.has(lower) && !OWN.has(asVariable(name)) && !without.includes(lower);
    })
    .flat();
}

/** Returns the trailers to pass on, as pairs: those that neither frame a message nor name its target. */
export function endToEndTrailers(raw: readonly string[]): readonly [name: string, value: string][] {
  return pairsOf(endToEnd(raw, NEVER_TRAILERS));
}

/** Returns a header's name in the form in which CGI, WSGI and PHP have it, but for its case: they make one variable of `_`, `-` and `.`. */
export function asVariable(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z\d]/g, "-");
}

/** Returns a status' text as Node sends one: an upstream service's may have control characters. */
export function statusText({ statusMessage = "" }: Pick<IncomingMessage, "statusMessage">): string {
  return statusMessage.replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, "?");
}

/** Returns whether a request without a guard may become a connection of another protocol: it has no body, and the protocol no requests. */
export function mayUpgrade(head: Pick<IncomingMessage, "headers">): boolean {
  const protocols = head.headers.upgrade?.split(",") ?? [];
  return protocols.length > 0 && !hasBody(head) && !protocols.some((protocol) => CARRIES_HTTP.test(protocol));
}

/** Returns whether a request has a body of at least one byte, or of a length that is not known yet. */
export function hasBody({ headers }: Pick<IncomingMessage, "headers">): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) !== 0;
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

/** Returns the values of all headers that a service may take for one of this name. @param name in lower case, with hyphens. */
export function valuesOf(raw: readonly string[], name: string): readonly string[] {
  return pairsOf(raw).flatMap(([of, value]) =>
    of.length === name.length && asVariable(of) === name ? [value] : [],
  );
}
