/** A class without a JSON form. */
class Opaque {
  readonly value = 1;
}

/** Reads the values that JSON does not have. The README of this folder's parent explains the tags. */
const TAGS: Readonly<Record<string, (argument: never) => unknown>> = {
  $date: (text: string) => new Date(text),
  $bytes: (hex: string) => Uint8Array.from(Buffer.from(hex, "hex")),
  $double: (bits: string) => Buffer.from(bits, "hex").readDoubleBE(),
  $integer: (digits: string) => BigInt(digits),
  $set: (elements: unknown[]) => new Set(elements),
  $object: () => new Opaque(),
  $text: (length: number) => "x".repeat(length),
  $circular: () => {
    const value: { self?: unknown } = {};
    value.self = value;
    return value;
  },
  $nested: (depth: number) => JSON.parse("[".repeat(depth) + "]".repeat(depth)),
};

/** Returns the value that a case's JSON stands for. */
export function readValue(json: unknown): unknown {
  if (Array.isArray(json)) return json.map(readValue);
  if (typeof json !== "object" || json === null) return json;
  const entries = Object.entries(json);
  const [[tag = "", argument] = []] = entries;
  const read = entries.length === 1 ? TAGS[tag] : undefined;
  if (read !== undefined) return read(argument as never);
  return Object.fromEntries(entries.map(([name, member]) => [name, readValue(member)]));
}

/** Returns a value as a case's JSON has it. A value that JSON omits is null. */
export function writeValue(value: unknown): unknown {
  if (value instanceof Uint8Array) return { $bytes: Buffer.from(value).toString("hex") };
  try {
    return JSON.parse(JSON.stringify(value ?? null));
  } catch {
    return { $unwritable: true };
  }
}
