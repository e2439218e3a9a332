import type { Transport } from "@connectrpc/connect";
import { refusedField } from "../errors/violations.ts";

/** A way to the service that can be closed. */
export interface Connection {
  readonly transport: Transport;
  /** Ends the calls that are open. */
  readonly close: () => void;
}

/**
 * Returns the origin of an http: or https: URL. A path is refused: gRPC's requests have the method's name alone as theirs.
 *
 * @throws InvalidRequestError.
 */
export function parseOrigin(address: string): string {
  const { origin, pathname } = parseUrl(address);
  if (pathname === "/") return origin;
  const description = `must have no path, because gRPC has none before the method's name, is ${JSON.stringify(pathname)}`;
  throw refusedField("address", description);
}

/** Returns an http: or https: URL, with its path and without a slash at its end. @throws InvalidRequestError. */
export function parseBaseUrl(address: string): string {
  const { origin, pathname } = parseUrl(address);
  return origin + pathname.replace(/\/+$/, "");
}

/** @throws InvalidRequestError for what is no http: or https: URL, or has parts that would be dropped. */
function parseUrl(address: string): URL {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url?.protocol !== "http:" && url?.protocol !== "https:") {
    const description = `must be a URL such as "http://localhost:50051", is ${JSON.stringify(address)}`;
    throw refusedField("address", description);
  }
  // Neither is shown: it may be a secret.
  if (url.username !== "" || url.password !== "") {
    throw refusedField("address", "must have no user or password: a credential is the apiKey");
  }
  if (url.search !== "") throw refusedField("address", "must have no query");
  if (url.hash !== "") throw refusedField("address", "must have no fragment");
  return url;
}

/** The header that says who calls. @throws InvalidRequestError for what can't be a header. */
export function credential(apiKey: string | undefined): string {
  // Never shown: it is a secret even if it is a wrong one.
  if (typeof apiKey !== "string" || !/^[\x21-\x7e]+$/.test(apiKey)) {
    throw refusedField("apiKey", "must be an API key (ow_…), visible ASCII without spaces");
  }
  return `Bearer ${apiKey}`;
}
