import { type DescField, type FileRegistry, ScalarType } from "@bufbuild/protobuf";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import { factsOf } from "../../server/src/domain/fields.ts";
import { describeLimitMs } from "../../server/src/domain/limits.ts";
import type { FieldFacts } from "../../server/src/gen/onceward/v1/facts_pb.ts";

/** Returns the limits and the default of a field as sentences; empty if it has none. */
export function limitText(registry: FileRegistry, field: DescField): string {
  const facts = factsOf(field, registry);
  const required = facts.required ? "Required." : "";
  const rule = facts.rule === "" ? "" : `It ${facts.rule}.`;
  const applies = facts.default || facts.defaultFrom;
  const unset = applies === "" ? "" : `Default: ${applies}.`;
  return [required, rule || rangeText(field, facts), unset].filter((sentence) => sentence !== "").join(" ");
}

function rangeText(field: DescField, facts: FieldFacts): string {
  const [min, max] = [Number(facts.min), Number(facts.max)];
  if (field.message?.typeName === TimestampSchema.typeName && max > 0)
    return `At most ${describeLimitMs(max)} after the server's time.`;
  const say = isDuration(field) ? describeLimitMs : (count: number) => count.toLocaleString("en-US");
  const unit = unitOf(field);
  if (max === 0) return min === 0 ? "" : `At least ${say(min)}${unit}.`;
  if (min === max) return `${say(max)}${unit}.`;
  const all = facts.maxJsonBytes === 0n ? "" : `, ${say(Number(facts.maxJsonBytes))} bytes as compact JSON`;
  const range = min === 0 ? `At most ${say(max)}${unit}${all}` : `${say(min)} to ${say(max)}${unit}`;
  const parts = [facts.keys, facts.values].map((part) => Number(part?.max ?? 0));
  return parts[0] === 0
    ? `${range}.`
    : `${range}; a name has 1 to ${say(parts[0] ?? 0)} bytes, a value at most ${say(parts[1] ?? 0)}.`;
}

function isDuration(field: DescField): boolean {
  return field.message?.typeName === "google.protobuf.Duration";
}

function unitOf(field: DescField): string {
  if (field.fieldKind === "list" || field.fieldKind === "map") return " entries";
  if (field.fieldKind !== "scalar") return "";
  if (field.scalar === ScalarType.STRING) return " bytes of UTF-8";
  return field.scalar === ScalarType.BYTES ? " bytes" : "";
}
