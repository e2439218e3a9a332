import type { ServerResponse } from "node:http";
import { PropertyOverrides } from "./property-overrides.ts";
import type { WholeResponse } from "./whole-response.ts";

/**
 * Sends a response, and ignores everything that is written afterwards: for frameworks that write a response of their
 * own after a request was answered. To them, the response looks open.
 */
export function sendFinal(response: ServerResponse, { status, headers, body }: WholeResponse): void {
  response.statusCode = status;
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  response.end(body);
  const overrides = new PropertyOverrides(response);
  // A logger that reads the status later gets that of the response that was sent.
  overrides.define("statusCode", { get: () => status, set: () => {} });
  overrides.define("headersSent", { get: () => false });
  overrides.define("writableEnded", { get: () => false });
  for (const name of CHAINABLE) overrides.define(name, { value: () => response, writable: true });
  overrides.define("removeHeader", { value: () => {}, writable: true });
  overrides.define("flushHeaders", { value: () => {}, writable: true });
  overrides.define("write", { value: () => true, writable: true });
}

const CHAINABLE = ["setHeader", "setHeaders", "appendHeader", "writeHead", "end", "destroy"] as const;
