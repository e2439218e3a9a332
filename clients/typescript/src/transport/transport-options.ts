import type { Transport } from "@connectrpc/connect";
import { refusedField } from "../errors/violations.ts";

/** A closable connection to the service. */
export interface Connection {
  readonly transport: Transport;
  /** Closes the connection; calls in flight fail. */
  readonly close: () => void;
  /**
   * Whether concurrent calls may share a request. False where a runtime ends the request that waits for another one's
   * I/O, as Cloudflare Workers do. Default: true.
   */
  readonly gathersCalls?: boolean | undefined;
}

/**
 * Returns the path of a Unix socket's address, such as "unix:/run/onceward/onceward.sock"; undefined for another address. A path has
 * none of the characters that a URL reads otherwise, so that every language's client means the same file.
 */
export function socketPathOf(address: string): string | undefined {
  return /^unix:(?:\/\/)?(\/[^/?#%][^?#%]*)$/.exec(address)?.[1];
}

/**
 * Returns the origin of an http: or https: URL, or the address of a Unix socket. A URL's path is refused, because a gRPC request's
 * path is the method's name.
 *
 * @throws InvalidRequestError.
 */
export function parseOrigin(address: string): string {
  if (socketPathOf(address)) return address;
  const { origin, pathname } = parseUrl(address);
  if (pathname === "/") return origin;
  const description = `must have no path, because gRPC has none before the method's name, is ${JSON.stringify(pathname)}`;
  throw refusedField("address", description);
}

/** Returns an http: or https: URL with its path, without a trailing slash. @throws InvalidRequestError. */
export function parseBaseUrl(address: string): string {
  const { origin, pathname } = parseUrl(address);
  return origin + pathname.replace(/\/+$/, "");
}

/** Parses an http: or https: URL. @throws InvalidRequestError for other URLs, and for parts that calls would ignore. */
function parseUrl(address: string): URL {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url?.protocol !== "http:" && url?.protocol !== "https:") {
    const description = `must be a URL such as "http://localhost:50051", or "unix:" and an absolute path without ?, # and %, is ${JSON.stringify(address)}`;
    throw refusedField("address", description);
  }
  // The message shows neither, because they may be secrets.
  if (url.username !== "" || url.password !== "") {
    throw refusedField("address", "must have no user or password: a credential is the apiKey or the token");
  }
  if (url.search !== "") throw refusedField("address", "must have no query");
  if (url.hash !== "") throw refusedField("address", "must have no fragment");
  return url;
}
