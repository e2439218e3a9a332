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
    const response = await fetch(url, init);
    const request = requestIdOf(init?.body);
    if (request === undefined || response.body === null) return response;
    const ended = () => void setTimeout(() => onStreamEnd(request), PARSING_GRACE_MS).unref();
    const { status, statusText, headers } = response;
    return new Response(watched(response.body, ended), { status, statusText, headers });
  };
  const { url, headers } = address;
  const options = { requestInit: { headers: { ...headers } }, fetch: watching };
  // The SDK's declarations of optional members don't allow undefined, which its classes declare.
  return new StreamableHTTPClientTransport(url, options) as Transport;
}

function requestIdOf(body: unknown): RequestId | undefined {
  if (typeof body !== "string") return undefined;
  const { id, method }: { id?: RequestId; method?: string } = JSON.parse(body);
  return method === undefined ? undefined : id;
}

/** Returns the same stream; calls `ended` when it ends or breaks, unless an event id makes it possible to resume it. */
function watched(body: ReadableStream<Uint8Array>, ended: () => void): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
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
