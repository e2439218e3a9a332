import { readWhole } from "./bounded-body.ts";
import type { Handled, Handling } from "./guard.ts";
import type { WholeResponse } from "./whole-response.ts";

/**
 * Calls a handler, and reads its response. `sent` is an equal response, because the original's body has been read.
 *
 * @param errorOf returns the handler's error, if the response is the framework's answer to it.
 */
export function handleFetch(
  request: Request,
  respond: () => Promise<Response>,
  errorOf: () => unknown = () => undefined,
): Handling<Response> {
  const reading = new AbortController();
  return {
    handled: respond().then(async (response) => {
      const error = errorOf();
      return { ...(await readResponse(response, reading.signal)), error };
    }),
    disconnected: request.signal,
    abandon: () => reading.abort(),
  };
}

async function readResponse(response: Response, abandoned: AbortSignal): Promise<Handled<Response>> {
  const { status, headers, body } = response;
  if (body === null) return { status, headers, body: new Uint8Array(), sent: response };
  const read = await readWhole(body, abandoned);
  switch (read.kind) {
    case "whole": {
      const sent = new Response(read.bytes, response);
      // The headers as sent: the Response of Hono's server gets the content type of a text only when its body is read.
      return { status, headers: sent.headers, body: read.bytes, sent };
    }
    case "stream": {
      const sent = new Response(streamOf(read.chunks), response);
      return { status, headers, body: undefined, sent };
    }
  }
}

/** Does what `ReadableStream.from` does, which Bun lacks up to 1.3.14. */
function streamOf(source: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const chunks = source[Symbol.asyncIterator]();
  return new ReadableStream({
    async pull(controller) {
      const next = await chunks.next();
      if (next.done) controller.close();
      else controller.enqueue(next.value);
    },
    async cancel() {
      await chunks.return?.();
    },
  });
}

/** Returns a replay or a problem as a Response. */
export function toResponse({ status, headers, body }: WholeResponse): Response {
  // Response refuses a body for a status such as 204.
  return new Response(body?.byteLength ? body : null, { status, headers });
}

/** Returns a response with headers of the guard. A response of `fetch` has headers that can't be changed. */
export function withHeaders(response: Response, added: Headers): Response {
  const entries = [...added];
  if (entries.length === 0) return response;
  const changed = new Response(response.body, response);
  for (const [name, value] of entries) changed.headers.set(name, value);
  return changed;
}

/** Returns the response for a client that has disconnected; the platform does not send it. */
export function goneResponse(): Response {
  return new Response(null, { status: 503 });
}
