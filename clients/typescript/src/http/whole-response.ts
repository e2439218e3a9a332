import { OncewardError } from "../errors/errors.ts";
import type { Codec, EncodedValue } from "../run/codec.ts";
import { MARKED } from "../run/result-codec.ts";
import { utf8Length } from "../wire/bytes.ts";
import {
  MAX_CONTENT_TYPE_BYTES,
  MAX_METADATA_BYTES,
  MAX_METADATA_ENTRIES,
  MAX_METADATA_NAME_BYTES,
  MAX_METADATA_VALUE_BYTES,
  MAX_RESULT_BYTES,
} from "../wire/limits.ts";

/** A response that is whole in memory, as it is stored and replayed. Header names are in lower case. */
export interface WholeResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined if the body is larger than any policy allows; then it can't be stored. */
  readonly body: Uint8Array | undefined;
}

/** Returns whether a response with this status ends its request: 1xx does not, and other numbers have no class (RFC 9110, 15). */
export function isFinalStatus(status: number): boolean {
  return Number.isInteger(status) && status >= 200 && status <= 599;
}

const STATUS = "http-status";
const HEADER_PREFIX = "http-header-";
const CONTENT_TYPE = "content-type";
const TOO_LARGE = "RESULT_TOO_LARGE";

/**
 * Stores the body's bytes unchanged, its content type as the result's, and the status and other headers as metadata.
 */
export const responseCodec: Codec<WholeResponse> = {
  encode({ status, headers, body }) {
    if (body === undefined) throw tooLarge("The response", MAX_RESULT_BYTES);
    const contentType = headers[CONTENT_TYPE] ?? "";
    if (utf8Length(contentType) > MAX_CONTENT_TYPE_BYTES)
      throw tooLarge(CONTENT_TYPE, MAX_CONTENT_TYPE_BYTES);
    const metadata: Record<string, string> = { [STATUS]: String(status) };
    for (const [name, value] of Object.entries(headers)) {
      if (name === CONTENT_TYPE) continue;
      if (utf8Length(value) > MAX_METADATA_VALUE_BYTES) throw tooLarge(name, MAX_METADATA_VALUE_BYTES);
      const stored = HEADER_PREFIX + name;
      if (utf8Length(stored) > MAX_METADATA_NAME_BYTES) throw tooLarge(stored, MAX_METADATA_NAME_BYTES);
      metadata[stored] = value;
    }
    if (Object.keys(metadata).length > MAX_METADATA_ENTRIES) {
      throw new OncewardError(
        TOO_LARGE,
        `The response has ${MAX_METADATA_ENTRIES} headers to store, or more.`,
      );
    }
    if (utf8Length(JSON.stringify(metadata)) > MAX_METADATA_BYTES) {
      throw tooLarge("The headers to store, together,", MAX_METADATA_BYTES);
    }
    return { payload: body, contentType, metadata };
  },

  decode({ payload, contentType, metadata = {} }: EncodedValue) {
    const status = Number(metadata[STATUS]);
    if (!isFinalStatus(status)) throw new TypeError("the stored result is not an HTTP response");
    const headers: Record<string, string> = contentType === "" ? {} : { [CONTENT_TYPE]: contentType };
    for (const [name, value] of Object.entries(metadata)) {
      if (name.startsWith(HEADER_PREFIX)) headers[name.slice(HEADER_PREFIX.length)] = value;
    }
    return { status, headers, body: payload };
  },
};

/** As `responseCodec`; of a response below 400, stores only that it was sent. A refusal has no secret, and was not carried out. */
export const markCodec: Codec<WholeResponse> = {
  ...responseCodec,
  encode: (response) => (response.status < 400 ? MARKED : responseCodec.encode(response)),
};

function tooLarge(what: string, maxBytes: number): OncewardError {
  return new OncewardError(TOO_LARGE, `${what} is larger than ${maxBytes} bytes; no policy takes more.`);
}

/** Headers in the forms that frameworks use. Repeated headers are joined, as RFC 9110, 5.3 allows. */
export type Headers =
  | Iterable<readonly [string, string]>
  | Readonly<Record<string, number | string | readonly string[] | undefined>>;

/** Returns the allowed headers, by their names in lower case. */
export function pickHeaders(
  headers: Headers,
  allowed: Pick<ReadonlySet<string>, "has">,
): Record<string, string> {
  const entries = Symbol.iterator in headers ? headers : Object.entries(headers);
  const picked: Record<string, string> = {};
  for (const [name, value] of entries) {
    const key = name.toLowerCase();
    if (value === undefined || !allowed.has(key)) continue;
    const text = typeof value === "object" ? value.join(", ") : String(value);
    picked[key] = key in picked ? `${picked[key]}, ${text}` : text;
  }
  return picked;
}
