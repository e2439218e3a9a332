import { formatSize } from "./bytes.ts";

/** As much of a payload as the page shows. */
export const SHOWN_PAYLOAD_BYTES = 64 * 1_024;

const HEX_ROW_BYTES = 16;

/** A payload for reading. */
export interface PayloadText {
  readonly form: "text" | "hex";
  readonly text: string;
  /** How many bytes are not shown. */
  readonly hiddenBytes: number;
}

/**
 * Returns the first 64 KiB of a payload: as text if they are UTF-8 without control characters, JSON with line breaks,
 * else as rows of hexadecimal bytes.
 */
export function readPayload(bytes: Uint8Array): PayloadText {
  const shown = bytes.subarray(0, SHOWN_PAYLOAD_BYTES);
  const hiddenBytes = bytes.length - shown.length;
  const text = decodeText(shown, hiddenBytes > 0);
  if (text === undefined) return { form: "hex", text: hexRows(shown), hiddenBytes };
  return { form: "text", text: hiddenBytes > 0 ? text : withLineBreaks(text), hiddenBytes };
}

/** As much of a payload as a line has room for. */
const SHOWN_CHARACTERS = 120;

/** Returns the beginning of a payload in one line. */
export function payloadLine(bytes: Uint8Array): string {
  if (bytes.length === 0) return "nothing";
  const { form, text } = readPayload(bytes);
  if (form === "hex") return formatSize(bytes.length);
  // JSON is shown with line breaks elsewhere.
  const line = text.replace(/([[{])\s+|\s+([\]}])/g, "$1$2").replace(/\s+/g, " ");
  return line.length > SHOWN_CHARACTERS ? `${line.slice(0, SHOWN_CHARACTERS)}…` : line;
}

/** Returns bytes as hexadecimal digits, such as a fingerprint's. */
export function formatHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Returns bytes as text; undefined if they are not. `cut`: the last character may be incomplete, which `stream` skips. */
export function decodeText(bytes: Uint8Array, cut = false): string | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: cut });
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the question is whether there are any.
    return /[\u0000-\u0008\u000b\u000c\u000e-\u001f]/.test(text) ? undefined : text;
  } catch {
    return undefined;
  }
}

/** Deeper than usual JSON. The indents of 64 KiB nested without a limit would fill hundreds of megabytes. */
const MAX_INDENTED_DEPTH = 50;

/** Numbers that JSON.parse would round keep the text as it is, and so does deep nesting. */
function withLineBreaks(text: string): string {
  if (!/^\s*[[{]/.test(text) || /\d{16}|\d[.eE]/.test(text)) return text;
  try {
    const value: unknown = JSON.parse(text);
    return depthOf(text) > MAX_INDENTED_DEPTH ? text : JSON.stringify(value, undefined, 2);
  } catch {
    return text;
  }
}

/** Returns how deep the arrays and objects of valid JSON are nested. */
function depthOf(json: string): number {
  let depth = 0;
  let deepest = 0;
  for (const [bracket] of json.replace(/"(?:[^"\\]|\\.)*"/g, "").matchAll(/[[\]{}]/g)) {
    depth += bracket === "[" || bracket === "{" ? 1 : -1;
    deepest = Math.max(deepest, depth);
  }
  return deepest;
}

function hexRows(bytes: Uint8Array): string {
  const rows: string[] = [];
  for (let start = 0; start < bytes.length; start += HEX_ROW_BYTES) {
    const row = bytes.subarray(start, start + HEX_ROW_BYTES);
    rows.push(`${start.toString(16).padStart(6, "0")}  ${formatHex(row).replace(/../g, "$& ").trimEnd()}`);
  }
  return rows.join("\n");
}
