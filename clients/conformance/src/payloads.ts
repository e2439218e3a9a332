import type { JsonValue } from "@bufbuild/protobuf";

/**
 * The members of type bytes that hold texts in cases, and how they are named there: base64, which proto3 JSON has, can't be
 * read by people.
 */
const TEXTS = [
  ["payload", "payloadText"],
  ["state", "stateText"],
] as const;

/** Returns a message's JSON with `payloadText` and `stateText` as the bytes that proto3 JSON has. */
export function encodePayloads(value: JsonValue): JsonValue {
  return rename(value, (name, member) => {
    const [bytes] = TEXTS.find(([, text]) => text === name) ?? [];
    return bytes === undefined ? undefined : [bytes, Buffer.from(`${member}`).toString("base64")];
  });
}

/** Returns a message's JSON with bytes that are UTF-8 as `payloadText` and `stateText`. Other bytes stay base64. */
export function decodePayloads(value: JsonValue): JsonValue {
  return rename(value, (name, member) => {
    const [, text] = TEXTS.find(([bytes]) => bytes === name) ?? [];
    // A record has a `state` that is the name of an enum's value.
    if (text === undefined || typeof member !== "string" || member.startsWith("STATE_")) return undefined;
    const bytes = Buffer.from(member, "base64");
    const decoded = bytes.toString("utf8");
    return Buffer.from(decoded).equals(bytes) ? [text, decoded] : undefined;
  });
}

function rename(
  value: JsonValue,
  change: (name: string, member: JsonValue) => readonly [string, JsonValue] | undefined,
): JsonValue {
  if (Array.isArray(value)) return value.map((element) => rename(element, change));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => change(name, member) ?? [name, rename(member, change)]),
  );
}
