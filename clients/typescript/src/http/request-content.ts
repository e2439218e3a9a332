import { base64Url, sha256, utf8Bytes } from "../wire/bytes.ts";

/** What a body counts as: its JSON value, its multipart parts or its bytes; hashes are SHA-256 as base64url. */
export type BodyContent =
  | { readonly json: unknown }
  | { readonly parts: readonly string[] }
  | { readonly bytes: string };

const JSON_TYPE = /^\s*application\/([^\s;]+\+)?json\s*(;|$)/i;
const MULTIPART_BOUNDARY = /^\s*multipart\/.*;\s*boundary=(?:"([^"]+)"|([^\s;"]+))/i;

/**
 * Returns what a body counts as, the same in every language: JSON by its value, a multipart form by its parts without the boundary,
 * which clients choose again for each attempt, and anything else by its bytes. Nothing counts as the JSON value null.
 *
 * @param body bytes, or the value of a body parser, which counts as JSON; a text of another type counts by its bytes.
 * @param readsAsJson whether a body of any type is read as JSON if it is JSON.
 */
export function contentOfBody(body: unknown, contentType: string, readsAsJson: boolean): BodyContent {
  const saysJson = JSON_TYPE.test(contentType);
  const content = typeof body === "string" && !saysJson ? utf8Bytes(body) : body;
  if (!(content instanceof Uint8Array)) return { json: content ?? null };
  if (content.byteLength === 0) return { json: null };
  const json = saysJson || readsAsJson ? jsonIn(content) : undefined;
  if (json !== undefined) return { json };
  const parts = partsOf(content, contentType);
  return parts === undefined ? { bytes: digestOf(content) } : { parts };
}

/** Returns the value of a JSON text in UTF-8; undefined if the bytes are not JSON. */
export function jsonIn(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return undefined;
  }
}

/**
 * Returns the hashes of a multipart body's parts (RFC 2046, 5.1.1), each of its headers and content as sent; undefined for a body that is
 * not multipart, or breaks off before its last delimiter.
 */
function partsOf(body: Uint8Array, contentType: string): string[] | undefined {
  const [, quoted, boundary = quoted] = MULTIPART_BOUNDARY.exec(contentType) ?? [];
  if (boundary === undefined) return undefined;
  // The first delimiter may begin the body, without the line break that belongs to every other one.
  const text = `\r\n${new TextDecoder("latin1").decode(body)}`;
  const delimiter = `\r\n--${boundary}`;
  const lineEnd = /[ \t]*\r\n/y;
  const parts: string[] = [];
  let at = text.indexOf(delimiter);
  while (at !== -1) {
    lineEnd.lastIndex = at + delimiter.length;
    if (text.startsWith("--", lineEnd.lastIndex)) return parts;
    if (!lineEnd.test(text)) return undefined;
    const start = lineEnd.lastIndex;
    at = text.indexOf(delimiter, start);
    // Each character is a byte; the text has two more at its beginning.
    if (at !== -1) parts.push(digestOf(body.subarray(start - 2, at - 2)));
  }
  return undefined;
}

function digestOf(bytes: Uint8Array): string {
  return base64Url(sha256(bytes));
}
