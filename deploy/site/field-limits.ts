import { type DescField, type FileRegistry, getOption, ScalarType } from "@bufbuild/protobuf";
import { describeLimitMs } from "../../server/src/core/domain/limits.ts";
import { type FieldFacts, field as fieldFacts } from "../../server/src/gen/onceward/v1/facts_pb.ts";

/**
 * Returns the facts of a field, with the limits of the field that they name.
 *
 * @throws Error if they name a field that does not exist.
 */
export function factsOf(registry: FileRegistry, field: DescField): FieldFacts {
  const facts = getOption(field, fieldFacts);
  if (facts.sameAs === "") return facts;
  const [message = "", name] = facts.sameAs.split(".");
  const same = registry.getMessage(`onceward.v1.${message}`)?.fields.find((each) => each.name === name);
  if (same === undefined) throw new Error(`${field.parent.typeName}.${field.name} is the same as no field`);
  return { ...getOption(same, fieldFacts), required: facts.required };
}

/** Returns the limits and the default of a field as sentences; empty if it has none. */
export function limitText(registry: FileRegistry, field: DescField): string {
  const facts = factsOf(registry, field);
  const required = facts.required ? "Required." : "";
  const rule = facts.rule === "" ? "" : `It ${facts.rule}.`;
  const applies = facts.default || facts.defaultFrom;
  const unset = applies === "" ? "" : `Default: ${applies}.`;
  return [required, rule || rangeText(field, facts), unset].filter((sentence) => sentence !== "").join(" ");
}

function rangeText(field: DescField, facts: FieldFacts): string {
  const [min, max] = [Number(facts.min), Number(facts.max)];
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
