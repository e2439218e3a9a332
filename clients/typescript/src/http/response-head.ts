import { type OutgoingHttpHeaders, ServerResponse } from "node:http";

/** Applies the arguments of `writeHead`: the status, its message, and headers as an object or as a flat list. */
export function setHead(response: ServerResponse, head: readonly unknown[]): void {
  const [status, ...rest] = head;
  response.statusCode = Number(status);
  for (const part of rest) {
    if (typeof part === "string") response.statusMessage = part;
    else if (Array.isArray(part)) setFlatHeaders(response, part.flat());
    else if (part !== null && typeof part === "object") {
      for (const [name, value] of Object.entries(part))
        if (value !== undefined) response.setHeader(name, value);
    }
  }
}

function setFlatHeaders(response: ServerResponse, flat: readonly string[]): void {
  for (let index = 0; index + 1 < flat.length; index += 2) response.removeHeader(flat[index] ?? "");
  for (let index = 0; index + 1 < flat.length; index += 2) {
    response.appendHeader(flat[index] ?? "", flat[index + 1] ?? "");
  }
}

/** Removes the headers that were set since `before`, and the message of the status. */
export function restoreHead(response: ServerResponse, before: OutgoingHttpHeaders): void {
  for (const name of response.getHeaderNames()) if (!(name in before)) response.removeHeader(name);
  for (const [name, value] of Object.entries(before))
    if (value !== undefined && response.getHeader(name) !== value) response.setHeader(name, value);
  // HTTP/2 has no message, and warns of it.
  if (response instanceof ServerResponse) response.statusMessage = "";
}
