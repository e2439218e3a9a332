/**
 * Fetches a URL, and reads the whole response within a limit. Timeout and treatment of redirects are those of `request`.
 *
 * @throws if the response does not arrive in time, or is larger than `maxBytes`.
 */
export async function boundedFetch(url: string, request: RequestInit, maxBytes: number): Promise<Response> {
  const response = await fetch(url, request);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) throw new Error(`${new URL(url).origin} answered with more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  const { status, headers } = response;
  // Statuses without a body, which `Response` does not accept one with.
  const body = [204, 205, 304].includes(status) ? null : Buffer.concat(chunks);
  return new Response(body, { status, headers });
}
