import { readBounded } from "./bounded-body.ts";
import type { WholeResponse } from "./whole-response.ts";

type Format = ConstructorParameters<typeof DecompressionStream>[0];

/** The codings of RFC 9110, 8.4.1 that are decoded, as DecompressionStream names them; some platforms lack brotli. */
const FORMATS: Readonly<Record<string, string>> = {
  gzip: "gzip",
  "x-gzip": "gzip",
  deflate: "deflate",
  br: "brotli",
};

/**
 * Returns a stored response in a coding that the client accepts: the body as it is stored, or decoded. So the answer to
 * a first client, compressed inside the guard, also suits one that takes no compression.
 *
 * A body that can't be decoded is returned as it is stored, as RFC 9110, 12.5.3 allows: several codings, one that the
 * platform does not know, damaged bytes, and a body that is larger than 1 MiB when decoded.
 *
 * @param acceptEncoding the header of the request that is answered. Without it, every coding is accepted (RFC 9110, 12.5.3).
 */
export async function inAcceptedCoding(
  response: WholeResponse,
  acceptEncoding: string | undefined,
): Promise<WholeResponse> {
  const { "content-encoding": coding, ...headers } = response.headers;
  if (coding === undefined || response.body === undefined || accepts(acceptEncoding, coding)) return response;
  const body = await decode(response.body, FORMATS[coding.toLowerCase()]);
  if (body === undefined) return response;
  const { etag } = headers;
  // A strong ETag names the bytes of one coding (RFC 9110, 8.8.3.3).
  const isStrong = etag?.startsWith('"');
  return { ...response, headers: { ...headers, ...(isStrong && { etag: `W/${etag}` }) }, body };
}

/** Returns whether Accept-Encoding (RFC 9110, 12.5.3) allows a coding. */
function accepts(acceptEncoding = "*", coding: string): boolean {
  const weights = new Map(
    acceptEncoding.split(",").map((part) => {
      const [name = "", ...parameters] = part.split(";").map((text) => text.trim().toLowerCase());
      const weight = parameters.find((parameter) => parameter.startsWith("q="));
      return [name, weight === undefined ? 1 : Number(weight.slice("q=".length))];
    }),
  );
  return (weights.get(coding.toLowerCase()) ?? weights.get("*") ?? 0) > 0;
}

/** Returns undefined if the bytes can't be decoded, or are larger than 1 MiB afterwards. */
async function decode(body: Uint8Array, format: string | undefined): Promise<Uint8Array | undefined> {
  if (format === undefined) return undefined;
  const reading = new AbortController();
  try {
    const decoder = new DecompressionStream(format as Format);
    const source = new Response(Uint8Array.from(body)).body?.pipeThrough(decoder);
    const read = source && (await readBounded(source, reading.signal));
    return read?.kind === "whole" ? read.bytes : undefined;
  } catch {
    return undefined;
  } finally {
    reading.abort();
  }
}
