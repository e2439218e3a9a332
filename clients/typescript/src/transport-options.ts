import type { Transport } from "@connectrpc/connect";
import { refusedField } from "./violations.ts";

/** A way to the service that can be closed. */
export interface Connection {
  readonly transport: Transport;
  /** Ends the calls that are open. */
  readonly close: () => void;
}

/** The origin of an http: or https: URL. @throws InvalidRequestError. */
export function parseAddress(address: string): string {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url?.protocol === "http:" || url?.protocol === "https:") return url.origin;
  throw refusedField(
    "address",
    `must be a URL such as "http://localhost:50051", is ${JSON.stringify(address)}`,
  );
}

/** The header that says who calls. @throws InvalidRequestError for what can't be a header. */
export function credential(apiKey: string | undefined): string {
  // Never shown: it is a secret even if it is a wrong one.
  if (typeof apiKey !== "string" || !/^[\x21-\x7e]+$/.test(apiKey)) {
    throw refusedField("apiKey", "must be an API key (ow_…), visible ASCII without spaces");
  }
  return `Bearer ${apiKey}`;
}
