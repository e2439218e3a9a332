import { randomBytes } from "node:crypto";
import { create, type DescField, type DescMessage, type Message } from "@bufbuild/protobuf";

/** A text that stands nowhere else, and says what it was planted as. */
export type Plant = string;

/** Makes a plant; `what` holds only letters, and ends up in it. */
export function plant(what: string): Plant {
  return `planted${what}${randomBytes(12).toString("hex")}`;
}

/** Those of the plants that show in a text: as they are, or in hexadecimal or base64 digits. */
export function showing(plants: readonly Plant[], text: string): readonly Plant[] {
  const lowerCase = text.toLowerCase();
  return plants.filter((each) => {
    const hex = Buffer.from(each).toString("hex");
    return (
      text.includes(each) || lowerCase.includes(hex) || base64Forms(each).some((form) => text.includes(form))
    );
  });
}

/** However many bytes come before a text, its base64 digits hold one of these. */
function base64Forms(text: string): readonly string[] {
  return [0, 1, 2].flatMap((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(text)]);
    // Digits at either end are made of neighbours' bits, too.
    return (["base64", "base64url"] as const).map((encoding) => bytes.toString(encoding).slice(4, -4));
  });
}

/** A message with a plant in every field that takes text or bytes, but for those whose text is given by their name. */
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
      // Times, durations and masks hold nothing of a tenant's.
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
