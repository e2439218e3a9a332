import { type DescMessage, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { OncewardError } from "../errors/errors.ts";
import { jsonValue } from "../keys/plain-value.ts";
import { utf8Bytes, utf8Text } from "../wire/bytes.ts";

/** A value as it is stored: opaque to the service and replayed byte for byte. */
export interface EncodedValue {
  /** At most the policy's `max_result_bytes`, by default 64 KiB. */
  readonly payload: Uint8Array;
  /** The payload's media type (RFC 9110), at most 255 bytes. */
  readonly contentType: string;
  /** Values beside the payload, such as an HTTP status; at most 64, names up to 128 bytes, values up to 4,096. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/**
 * Encodes a run's values for storage, and decodes them. Failures (see TerminalError) are JSON with every codec.
 *
 * `run` returns the decoded value on the first delivery too, so that first delivery and repeat see the same.
 */
export interface Codec<T> {
  /** @throws any error: the operation is then stored as done without its value. */
  encode(value: T): EncodedValue;
  /** @throws any error: the run then throws ResultUnavailableError with this error as its `cause`. */
  decode(stored: EncodedValue): T;
}

/** The content type of JSON results. */
export const JSON_CONTENT_TYPE = "application/json";

/**
 * The default codec: JSON, by the rule of `fingerprintOf`. A Date comes back as its ISO text, an instance of a class as its
 * members, and members that are undefined are omitted; undefined as the whole value stays undefined. Anything whose content
 * JSON would omit or change is refused with RESULT_NOT_JSON and its path: a BigInt, a whole number beyond 2^53 - 1, NaN, a
 * function, a Map, a Promise, an Error, fetch's Response, an iterator, a class with getters and without `toJSON`.
 */
export const jsonCodec: Codec<unknown> = {
  encode: (value) => ({
    payload: encodeJson(value),
    contentType: value === undefined ? "" : JSON_CONTENT_TYPE,
  }),
  decode({ payload, contentType }) {
    if (contentType === JSON_CONTENT_TYPE || payload.byteLength === 0) return decodeJson(payload);
    throw new OncewardError(
      "RESULT_NOT_JSON",
      `The result is stored as ${contentType || "bytes"}, not JSON.`,
    );
  },
};

/** The codec of `seen`, which has no value: what another operation stored under the key is not decoded. */
export const noValueCodec: Codec<undefined> = {
  encode: () => ({ payload: new Uint8Array(), contentType: "" }),
  decode: () => undefined,
};

/** The codec for functions that return bytes: they are stored unchanged. */
export const bytesCodec: Codec<Uint8Array> = {
  encode: (payload) => ({ payload, contentType: "application/octet-stream" }),
  decode: (stored) => payloadAs("application/octet-stream", stored),
};

/** Returns the codec for functions that return a message of this schema: stored in Protobuf's binary format. */
export function protobufCodec<Desc extends DescMessage>(schema: Desc): Codec<MessageShape<Desc>> {
  const contentType = `application/protobuf; proto=${schema.typeName}`;
  return {
    encode: (message) => ({ payload: toBinary(schema, message), contentType }),
    decode: (stored) => fromBinary(schema, payloadAs(contentType, stored)),
  };
}

function payloadAs(expected: string, { payload, contentType }: EncodedValue): Uint8Array {
  if (contentType === expected) return payload;
  throw new TypeError(`the result is stored as ${contentType || "bytes"}, not as ${expected}`);
}

/**
 * Returns a value as UTF-8 JSON, as {@link jsonCodec} does. Undefined has no JSON form and becomes no bytes.
 *
 * @throws OncewardError RESULT_NOT_JSON.
 */
export function encodeJson(value: unknown): Uint8Array {
  if (value === undefined) return new Uint8Array();
  return withinJson(() => utf8Bytes(JSON.stringify(jsonValue(value, notJson))));
}

/**
 * Returns the value of UTF-8 JSON; undefined for no bytes.
 *
 * @throws OncewardError RESULT_NOT_JSON, also for a number that is rounded when it is read.
 */
export function decodeJson(bytes: Uint8Array): unknown {
  if (bytes.byteLength === 0) return undefined;
  return withinJson(() => jsonValue(JSON.parse(utf8Text(bytes)), notJson));
}

function withinJson<Value>(convert: () => Value): Value {
  try {
    return convert();
  } catch (cause) {
    if (cause instanceof OncewardError) throw cause;
    throw notJson(cause instanceof Error ? cause.message : `${cause}`, cause);
  }
}

function notJson(detail: string, cause?: unknown): OncewardError {
  return new OncewardError("RESULT_NOT_JSON", `The value has no JSON form: ${detail}`, { cause });
}
