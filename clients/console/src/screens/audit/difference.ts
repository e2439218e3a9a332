import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { formatDurationMs, SECOND_MS } from "../../format/duration.ts";
import { asTitle, formatCount, formatSize } from "../../format/quantity.ts";
import { formatAbsolute } from "../../format/time.ts";

/** A value that a change set, altered or removed. */
export interface Difference {
  /** The value's name in words, such as "Quotas: live records". */
  readonly label: string;
  /** Undefined: it was not set before. */
  readonly before: string | undefined;
  /** Undefined: it is no longer set. */
  readonly after: string | undefined;
}

/**
 * Returns the values in which an event's `before` and `after` differ, in the order in which they have them. Values that
 * stay are skipped.
 */
export function differences(
  before: JsonObject | undefined,
  after: JsonObject | undefined,
): readonly Difference[] {
  const old = flatten(before ?? {});
  const now = flatten(after ?? {});
  const paths = [...new Set([...old.keys(), ...now.keys()])];
  return paths
    .filter((path) => old.get(path) !== now.get(path))
    .map((path) => ({ label: labelOf(path), before: old.get(path), after: now.get(path) }));
}

const PATH_SEPARATOR = ".";

/** Returns every value below an object by its path, in words; empty objects have none, and null is not a value. */
function flatten(values: JsonObject, prefix = ""): Map<string, string> {
  const found = new Map<string, string>();
  for (const [name, value] of Object.entries(values)) {
    const path = `${prefix}${name}`;
    if (value === null) continue;
    if (typeof value === "object" && !Array.isArray(value)) {
      for (const [inner, words] of flatten(value, `${path}${PATH_SEPARATOR}`)) found.set(inner, words);
    } else {
      found.set(path, valueWords(name, value));
    }
  }
  return found;
}

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;
/** Values that the contract names in capitals. */
const CHOICE = /^(role|onLeaseExpiry|lateKeys)$/;
/** Ids and tokens, which are compared and not counted. */
const IDENTIFIER = /(Id|Job|Token)$/;

/** Returns a value in words. The server's names end with the units of their numbers. */
function valueWords(name: string, value: JsonValue): string {
  if (Array.isArray(value)) return value.length === 0 ? "none" : value.map(textOf).join(", ");
  if (typeof value === "string" && INSTANT.test(value)) return formatAbsolute(new Date(value));
  if (typeof value === "string" && CHOICE.test(name)) return value.toLowerCase().replaceAll("_", " ");
  if (typeof value !== "number" || IDENTIFIER.test(name)) return textOf(value);
  if (name.endsWith("Ms")) return formatDurationMs(value);
  if (name.endsWith("S")) return formatDurationMs(value * SECOND_MS);
  return name.endsWith("Bytes") ? formatSize(value) : formatCount(value);
}

function textOf(value: JsonValue): string {
  if (typeof value === "string") return value;
  if (typeof value === "boolean") return value ? "yes" : "no";
  return JSON.stringify(value);
}

/** Returns "Quotas: live records" for "quotas.liveRecords"; the units that the value shows are skipped. */
function labelOf(path: string): string {
  const words = path
    .split(PATH_SEPARATOR)
    .map((name) =>
      name
        .replace(/(Ms|S)$/, "")
        .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
        .toLowerCase(),
    )
    .join(": ");
  return asTitle(words);
}
