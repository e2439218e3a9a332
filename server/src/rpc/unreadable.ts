import type {
  UniversalServerRequest as ServerRequest,
  UniversalServerResponse as ServerResponse,
} from "@connectrpc/connect/protocol";

/** UNKNOWN, INVALID_ARGUMENT and INTERNAL; what connect-node says of a message that is too large is left as it is. */
const UNREADABLE_GRPC_STATUS = /grpc-status: (2|3|13)(\r|$)/;
const UNREADABLE_HTTP_STATUS: readonly number[] = [400, 500];

/**
 * Whether connect-node's own answer means that it could not read the request. gRPC-Web says so in the trailers, which
 * are all that its body holds then; the body is put back.
 */
export async function saysUnreadable(response: ServerResponse): Promise<boolean> {
  if (!response.header?.get("content-type")?.startsWith("application/grpc-web"))
    return UNREADABLE_HTTP_STATUS.includes(response.status);
  const chunks: Uint8Array[] = [];
  for await (const chunk of response.body ?? []) chunks.push(chunk);
  response.body = iterate(chunks);
  return UNREADABLE_GRPC_STATUS.test(Buffer.concat(chunks).toString("latin1"));
}

/** The same request with an empty message, which can be read in every protocol. */
export function emptied(request: ServerRequest): ServerRequest {
  const header = new Headers(request.header);
  for (const name of ["content-length", "content-encoding", "grpc-encoding"]) header.delete(name);
  const { url, message } = emptyMessage(request);
  return { ...request, url, header, body: iterate([message]) };
}

function emptyMessage({ method, url, header }: ServerRequest): { url: string; message: Uint8Array } {
  const emptyJson = "{}";
  if (method === "GET") {
    const query = `?connect=v1&encoding=json&message=${encodeURIComponent(emptyJson)}`;
    return { url: new URL(query, url).href, message: new Uint8Array() };
  }
  const contentType = header.get("content-type") ?? "";
  const body = contentType.includes("json") ? Buffer.from(emptyJson) : Buffer.alloc(0);
  if (!contentType.startsWith("application/grpc-web")) return { url, message: body };
  const frame = Buffer.alloc(5 + body.byteLength);
  frame.writeUInt32BE(body.byteLength, 1);
  body.copy(frame, 5);
  return { url, message: frame };
}

async function* iterate(chunks: readonly Uint8Array[]): AsyncIterable<Uint8Array> {
  yield* chunks;
}
