import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { RequestId } from "@modelcontextprotocol/sdk/types.js";

/** The server whose tools the proxy guards. */
export type UpstreamAddress =
  | {
      readonly kind: "command";
      readonly command: string;
      readonly args: readonly string[];
      readonly env: Readonly<Record<string, string>>;
    }
  | { readonly kind: "url"; readonly url: URL; readonly headers: Readonly<Record<string, string>> };

/** A longer message of a server over HTTP breaks its answer off. 10 MiB, as the protocol's SDK has it for a server's process. */
const MAX_MESSAGE_BYTES = 10 * 1024 * 1024;

/** The last message of a stream may still be in a parser when the stream has ended. */
const PARSING_GRACE_MS = 1000;

/**
 * Returns the transport to a server. Its process, if it is a command, starts with `start`.
 *
 * @param onStreamEnd is called if the HTTP answer to a request has ended and can't be resumed. The response may have been
 *   received before.
 */
export function connectUpstream(
  address: UpstreamAddress,
  onStreamEnd: (request: RequestId) => void,
): Transport {
  if (address.kind === "command") {
    const { command, args, env } = address;
    return new StdioClientTransport({ command, args: [...args], env: { ...env } });
  }
  const watching = async (url: string | URL, init?: RequestInit): Promise<Response> => {
    const { id: request, method } = requestOf(init?.body);
    const sent = new Headers(init?.headers);
    // The SDK sends the id of a session that has ended.
    if (method === "initialize") sent.delete("mcp-session-id");
    const response = await fetch(url, { ...init, headers: sent });
    if (response.body === null) return response;
    const ended = () => {
      if (request !== undefined) setTimeout(() => onStreamEnd(request), PARSING_GRACE_MS).unref();
    };
    const { status, statusText, headers } = response;
    return new Response(watched(response.body, ended), { status, statusText, headers });
  };
  const { url, headers } = address;
  const options = { requestInit: { headers: { ...headers } }, fetch: watching };
  // The SDK's declarations of optional members don't allow undefined, which its classes declare.
  return new StreamableHTTPClientTransport(url, options) as Transport;
}

/** What the SDK says of a server whose process has ended. */
const NO_PROCESS = "Not connected";
/** The codes of errors before there is a connection. */
const NO_CONNECTION = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT"];
/** The HTTP status by which a server says that it does not know the session. */
const NO_SESSION = 404;
/** The statuses that refuse a request before a method is called. */
const REFUSED = [401, 403, NO_SESSION, 429];

/** Returns whether a message whose sending failed with this error surely did not reach the server's tools. */
export function wasNotSent(error: unknown): boolean {
  const { message, cause, code } = Object(error);
  return message === NO_PROCESS || REFUSED.includes(code) || NO_CONNECTION.includes(Object(cause).code);
}

/** Returns whether sending failed because the server has ended the session: the client has to begin another one. */
export function isSessionEnd(error: unknown): boolean {
  return Object(error).code === NO_SESSION;
}

/** Returns the id and the method of a request, if the body is one. */
function requestOf(body: unknown): { readonly id?: RequestId; readonly method?: string } {
  const message = typeof body === "string" ? JSON.parse(body) : {};
  return message.method === undefined ? {} : message;
}

/**
 * Returns the same stream, which breaks at a message that is too long; calls `ended` when it ends or breaks, unless an event id
 * makes it possible to resume it.
 */
function watched(body: ReadableStream<Uint8Array>, ended: () => void): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const measure = createMeasure();
  let isResumable = false;
  const end = () => {
    if (!isResumable) ended();
  };
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) {
          controller.close();
          end();
          return;
        }
        if (measure(value) > MAX_MESSAGE_BYTES) {
          await reader.cancel();
          throw new Error(`a message has more than ${MAX_MESSAGE_BYTES} bytes`);
        }
        isResumable ||= /^id:/m.test(decoder.decode(value, { stream: true }));
        controller.enqueue(value);
      } catch (error) {
        controller.error(error);
        end();
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

const [LF, CR] = [10, 13];

/**
 * Returns a function that is given the chunks of an answer, and returns the bytes of its unfinished message: an event of a stream
 * ends with an empty line. JSON without empty lines, as servers write it, is one message.
 */
function createMeasure(): (chunk: Uint8Array) => number {
  let bytes = 0;
  let lineIsEmpty = false;
  return (chunk) => {
    for (const byte of chunk) {
      bytes++;
      if (byte === LF) {
        if (lineIsEmpty) bytes = 0;
        lineIsEmpty = true;
      } else if (byte !== CR) lineIsEmpty = false;
    }
    return bytes;
  };
}
