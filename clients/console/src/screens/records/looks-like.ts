const FINGERPRINT = /^\s*[0-9a-f]{64}\s*$/i;
/** A UUID, as the server names requests that have no id of their own. */
const REQUEST_ID = /^\s*[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\s*$/i;

/** Returns what the text of a search can be, beside a key: a key can be any text. */
export function looksLike(text: string): "fingerprint" | "request id" | "key" {
  if (FINGERPRINT.test(text)) return "fingerprint";
  return REQUEST_ID.test(text) ? "request id" : "key";
}
