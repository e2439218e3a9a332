import { type DescMessage, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { OncewardError } from "../errors/errors.ts";
import { decodeJson, encodeJson, JSON_CONTENT_TYPE } from "./json-bytes.ts";

/** A value as it is stored: opaque to the service and replayed byte for byte. */
export interface EncodedValue {
  /** At most the policy's `max_result_bytes`, 64 KiB unless tuned. */
  readonly payload: Uint8Array;
  /** What the payload is, as an RFC 9110 media type, at most 255 bytes. */
  readonly contentType: string;
  /** Facts beside the payload, such as an HTTP status; at most 64, names up to 128 bytes, values up to 4,096. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/**
 * How a run's values are stored and read again. Failures (see TerminalError) are JSON whatever the codec.
 *
 * The value that `run` returns is the decoded one, the first time too, so that first delivery and repeat see the same.
 */
export interface Codec<T> {
  /** @throws whatever it likes: the operation is then stored as done without its value. */
  encode(value: T): EncodedValue;
  /** @throws whatever it likes: the run then throws ResultUnavailableError with it as the cause. */
  decode(stored: EncodedValue): T;
}

/**
 * The default: what JSON says of the value. A Date comes back as its ISO text, NaN as null, members that are undefined not
 * at all; undefined alone stays undefined. What JSON can't say (BigInt, circular, a function) is RESULT_NOT_JSON.
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

/** For functions that return bytes: stored as they are. */
export const bytesCodec: Codec<Uint8Array> = {
  encode: (payload) => ({ payload, contentType: "application/octet-stream" }),
  decode: (stored) => payloadAs("application/octet-stream", stored),
};

/** For functions that return a message of this schema: stored in Protobuf's binary format. */
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
