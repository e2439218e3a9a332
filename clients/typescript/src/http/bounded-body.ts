import { OutcomeUnknownError, ownWordOf } from "../run/outcome-unknown.ts";
import { utf8Bytes } from "../wire/bytes.ts";
import { MAX_RESULT_BYTES } from "../wire/limits.ts";

/** A body, read as far as its size allows. */
export type BoundedBody =
  | { readonly kind: "whole"; readonly bytes: Uint8Array<ArrayBuffer> }
  /** The body is larger than any policy allows. `chunks` yields all of it, the part already read included. */
  | { readonly kind: "stream"; readonly chunks: AsyncIterable<Uint8Array> };

/**
 * Reads a body, at most one chunk beyond the largest result of 1 MiB. Rejects with the source's error.
 *
 * @param abandoned closes the source when it aborts: the body is no longer needed.
 */
export async function readBounded(
  source: AsyncIterable<Uint8Array | string>,
  abandoned: AbortSignal,
): Promise<BoundedBody> {
  const chunks = source[Symbol.asyncIterator]();
  abandoned.addEventListener("abort", () => {
    // An error while closing is ignored: the source's reader gets it, too.
    chunks.return?.().catch(() => {});
  });
  const read: Uint8Array[] = [];
  let sizeBytes = 0;
  for (let next = await chunks.next(); !next.done; next = await chunks.next()) {
    const bytes = bytesOf(next.value);
    read.push(bytes);
    sizeBytes += bytes.byteLength;
    if (sizeBytes > MAX_RESULT_BYTES) return { kind: "stream", chunks: resume(read, chunks) };
  }
  return { kind: "whole", bytes: concatenated(read, sizeBytes) };
}

/** Reads a response's body, as {@link readBounded}. @throws OutcomeUnknownError if it breaks off: the effect may have happened. */
export async function readWhole(...body: Parameters<typeof readBounded>): Promise<BoundedBody> {
  try {
    return await readBounded(...body);
  } catch (cause) {
    throw ownWordOf(cause) ?? new OutcomeUnknownError("The response was cut short.", { cause });
  }
}

async function* resume(
  read: readonly Uint8Array[],
  chunks: AsyncIterator<Uint8Array | string>,
): AsyncGenerator<Uint8Array> {
  try {
    yield* read;
    for (let next = await chunks.next(); !next.done; next = await chunks.next()) yield bytesOf(next.value);
  } finally {
    // A reader that stops early closes the source, too.
    await chunks.return?.();
  }
}

function bytesOf(chunk: Uint8Array | string): Uint8Array {
  return typeof chunk === "string" ? utf8Bytes(chunk) : chunk;
}

function concatenated(chunks: readonly Uint8Array[], sizeBytes: number): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(sizeBytes);
  let offset = 0;
  for (const chunk of chunks) {
    whole.set(chunk, offset);
    offset += chunk.byteLength;
  }
  return whole;
}
