import { readBounded } from "./bounded-body.ts";
import type { Handled, Handling } from "./guard.ts";
import type { WholeResponse } from "./whole-response.ts";

/** Calls a handler, and reads its response; what is sent instead says the same, byte for byte. */
export function handleFetch(request: Request, respond: () => Promise<Response>): Handling<Response> {
  const reading = new AbortController();
  return {
    handled: respond().then((response) => readResponse(response, reading.signal)),
    disconnected: request.signal,
    abandon: () => reading.abort(),
  };
}

async function readResponse(response: Response, abandoned: AbortSignal): Promise<Handled<Response>> {
  const { status, headers, body } = response;
  if (body === null) return { status, headers, body: new Uint8Array(), sent: response };
  const read = await readBounded(body, abandoned);
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

/** What a platform gets for a client that has left; it sends it to nobody. */
export function goneResponse(): Response {
  return new Response(null, { status: 503 });
}
