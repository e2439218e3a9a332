import { readBounded } from "./bounded-body.ts";
import type { Handled } from "./guard.ts";
import type { WholeResponse } from "./whole-response.ts";

/** Reads a handler's response; what is sent instead says the same, byte for byte. */
export async function readResponse(response: Response): Promise<Handled<Response>> {
  const { status, headers, body } = response;
  if (body === null) return { status, headers, body: new Uint8Array(), sent: response };
  const read = await readBounded(body);
  switch (read.kind) {
    case "whole":
      return { status, headers, body: read.bytes, sent: new Response(read.bytes, response) };
    case "stream": {
      const sent = new Response(ReadableStream.from(read.chunks), response);
      return { status, headers, body: undefined, sent };
    }
  }
}

/** A replay or a problem as a response. */
export function toResponse({ status, headers, body }: WholeResponse): Response {
  // A status such as 204 has no body, and Response insists.
  return new Response(body?.byteLength ? body : null, { status, headers });
}
