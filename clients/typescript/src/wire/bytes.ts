import { sha256OfBytes } from "#sha256";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Returns a text as UTF-8; a lone surrogate becomes U+FFFD. */
export function utf8Bytes(text: string): Uint8Array {
  return encoder.encode(text);
}

/** Returns the length of a text in bytes of UTF-8. */
export function utf8Length(text: string): number {
  return encoder.encode(text).byteLength;
}

/** Returns the text of UTF-8 bytes. @throws TypeError for bytes that are not UTF-8. */
export function utf8Text(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

/** Returns a few bytes, such as a hash, as base64url without padding (RFC 4648, section 5). */
export function base64Url(bytes: Uint8Array): string {
  const base64 = btoa(String.fromCharCode(...bytes));
  return base64.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/**
 * Returns the 32 bytes of the SHA-256 of bytes, or of a text's UTF-8.
 *
 * Synchronous, unlike WebCrypto: `claim.deriveKey` is called in the middle of the caller's code.
 */
export function sha256(data: string | Uint8Array): Uint8Array {
  return sha256OfBytes(typeof data === "string" ? utf8Bytes(data) : data);
}
