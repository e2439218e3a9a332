import { randomBytes } from "node:crypto";
import { create, type DescField, type DescMessage, type Message } from "@bufbuild/protobuf";

/** A unique text that names the field in which it was planted. */
export type Plant = string;

/** Creates a plant that contains `what`, which has only letters. */
export function plant(what: string): Plant {
  return `planted${what}${randomBytes(12).toString("hex")}`;
}

/** Returns the plants that a text contains: unchanged, or as hexadecimal or base64 digits. */
export function showing(plants: readonly Plant[], text: string): readonly Plant[] {
  const lowerCase = text.toLowerCase();
  return plants.filter((each) => {
    const hex = Buffer.from(each).toString("hex");
    return (
      text.includes(each) || lowerCase.includes(hex) || base64Forms(each).some((form) => text.includes(form))
    );
  });
}

/** Returns three strings: base64 of a text after any number of bytes contains one of them. */
function base64Forms(text: string): readonly string[] {
  return [0, 1, 2].flatMap((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(text)]);
    // The digits at both ends also contain bits of neighbouring bytes.
    return (["base64", "base64url"] as const).map((encoding) => bytes.toString(encoding).slice(4, -4));
  });
}

/**
 * Returns a message with a plant in every field of text or bytes, except for the fields with a given text.
 */
export function planted(desc: DescMessage, text: Plant, given: Readonly<Record<string, string>>): Message {
  const init: Record<string, unknown> = {};
  for (const field of desc.fields) {
    const value = plantedValue(field, text, given);
    if (value === undefined) continue;
    if (field.oneof === undefined) init[field.localName] = value;
    else init[field.oneof.localName] = { case: field.localName, value };
  }
  return create(desc, init);
}

function plantedValue(field: DescField, text: Plant, given: Readonly<Record<string, string>>): unknown {
  switch (field.fieldKind) {
    case "scalar":
      return given[field.name] ?? ofScalar(field.scalar, text);
    case "map":
      return { [text]: text };
    case "list":
      if (field.listKind === "message") return [planted(field.message, text, given)];
      return field.listKind === "scalar" ? [given[field.name] ?? ofScalar(field.scalar, text)] : undefined;
    case "message":
      // Times, durations and masks contain no data of a tenant.
      return field.message.typeName.startsWith("google.") ? undefined : planted(field.message, text, given);
    case "enum":
      return undefined;
  }
}

const STRING = 9;
const BYTES = 12;
const INT64 = 3;

function ofScalar(scalar: number, text: Plant): unknown {
  if (scalar === STRING) return text;
  if (scalar === BYTES) return Buffer.from(text);
  return scalar === INT64 ? 1n : undefined;
}
