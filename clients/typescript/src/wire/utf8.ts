const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** A text's bytes; a lone surrogate becomes U+FFFD. */
export function utf8Bytes(text: string): Uint8Array {
  return encoder.encode(text);
}

/** How many bytes a text takes. */
export function utf8Length(text: string): number {
  return encoder.encode(text).byteLength;
}

/** The inverse; what is no UTF-8 becomes U+FFFD. */
export function utf8Text(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}
