import { OncewardError } from "../errors/errors.ts";
import { utf8Bytes, utf8Text } from "../wire/utf8.ts";

/** What the bytes of a JSON text are labelled with. */
export const JSON_CONTENT_TYPE = "application/json";

/**
 * A value as UTF-8 JSON, by JSON.stringify: a Date becomes its ISO text, NaN becomes null, `toJSON` counts. Undefined
 * has no JSON and becomes no bytes.
 *
 * @throws OncewardError RESULT_NOT_JSON for a BigInt, a circular value, a function, a symbol.
 */
export function encodeJson(value: unknown): Uint8Array {
  if (value === undefined) return new Uint8Array();
  let json: string | undefined;
  try {
    json = JSON.stringify(value);
  } catch (cause) {
    throw notJson(cause instanceof Error ? cause.message : `${cause}`, cause);
  }
  if (json === undefined) throw notJson(`it is a ${typeof value}`);
  return utf8Bytes(json);
}

/** The inverse: no bytes are undefined. @throws OncewardError RESULT_NOT_JSON. */
export function decodeJson(bytes: Uint8Array): unknown {
  if (bytes.byteLength === 0) return undefined;
  try {
    return JSON.parse(utf8Text(bytes));
  } catch (cause) {
    throw notJson(cause instanceof Error ? cause.message : `${cause}`, cause);
  }
}

function notJson(why: string, cause?: unknown): OncewardError {
  return new OncewardError("RESULT_NOT_JSON", `The value can't be had as JSON: ${why}`, { cause });
}
