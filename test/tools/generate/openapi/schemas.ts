import {
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescMethodUnary,
  type DescOneof,
  ScalarType,
} from "@bufbuild/protobuf";
import { commentOf } from "../../../../deploy/site/comments.ts";
import { limitText } from "../../../../deploy/site/field-limits.ts";
import { factsOf } from "../../../../server/src/domain/fields.ts";
import { type JsonSchema, schemaRef } from "./json-schema.ts";
import { PROTO_FILES } from "./proto-files.ts";

/** Returns whether a request is refused without a field. */
function isRequired(field: DescField): boolean {
  return factsOf(field, PROTO_FILES).required;
}

/** Returns the limits of a field as JSON Schema has them. Those of durations and of policies are in the fields' descriptions. */
function limitsOf(field: DescField): JsonSchema {
  const { min, max, pattern, required, keys, values } = factsOf(field, PROTO_FILES);
  // Any other field may be empty.
  const [least, most] = [required ? Number(min) : 0, Number(max)];
  switch (field.fieldKind) {
    case "list":
      return { ...(least > 0 && { minItems: least }), ...(most > 0 && { maxItems: most }) };
    case "map":
      if (most === 0) return {};
      return {
        maxProperties: most,
        propertyNames: text(Number(keys?.min), Number(keys?.max)),
        additionalProperties: { type: "string", ...text(0, Number(values?.max)) },
      };
    case "scalar":
      if (required && pattern !== "") return { pattern: `^${pattern}$` };
      if (field.scalar === ScalarType.STRING) return text(least, most);
      if (field.scalar === ScalarType.BYTES) return most === 0 ? {} : { maxLength: base64Length(most) };
      return field.scalar === ScalarType.INT64 && least === 1 ? { pattern: POSITIVE } : {};
    default:
      return {};
  }
}

const POSITIVE = "^[1-9][0-9]{0,18}$";

/** JSON Schema counts characters. One of them is at least one byte, so that a longer text is refused in any case. */
function text(minBytes: number, maxBytes: number): JsonSchema {
  return { ...(minBytes > 0 && { minLength: minBytes }), ...(maxBytes > 0 && { maxLength: maxBytes }) };
}

/** Returns the length of the text in base64 of so many bytes. */
function base64Length(maxBytes: number): number {
  return 4 * Math.ceil(maxBytes / 3);
}

/**
 * Returns the schemas of the messages and enums that these methods need, by name. They describe the JSON that the service
 * writes (https://protobuf.dev/programming-guides/json/); it also reads the other forms of that mapping.
 */
export function messageSchemas(methods: readonly DescMethodUnary[]): Readonly<Record<string, JsonSchema>> {
  const schemas = new Map<string, JsonSchema>();
  const queue: (DescMessage | DescEnum)[] = methods.flatMap(({ input, output }) => [input, output]);
  for (const type of queue) {
    if (type.typeName in WELL_KNOWN || schemas.has(nameOf(type))) continue;
    schemas.set(nameOf(type), type.kind === "enum" ? enumSchema(type) : messageSchema(type));
    if (type.kind === "message") queue.push(...type.fields.flatMap((field) => typeOf(field) ?? []));
  }
  return Object.fromEntries([...schemas].sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** Returns the name of a message's or an enum's schema: its full name without the package. */
export function nameOf({ typeName }: DescMessage | DescEnum): string {
  return typeName.replace(/^onceward\.v1\./, "");
}

const WELL_KNOWN: Readonly<Record<string, JsonSchema>> = {
  "google.protobuf.Duration": {
    type: "string",
    pattern: "^-?[0-9]{1,12}(\\.[0-9]{1,9})?s$",
    description: 'Seconds with up to nine digits of a fraction, such as "1.5s".',
  },
  "google.protobuf.Timestamp": { type: "string", format: "date-time" },
  "google.protobuf.FieldMask": {
    type: "string",
    description: "Names of fields in lowerCamelCase, with commas between them.",
  },
  "google.protobuf.Struct": { type: "object" },
};

const INTEGER: JsonSchema = { type: "integer", minimum: -(2 ** 31), maximum: 2 ** 31 - 1 };
/** A number of JavaScript would lose digits. */
const INTEGER_64: JsonSchema = { type: "string", format: "int64", pattern: "^-?[0-9]{1,19}$" };
const SCALARS: Partial<Readonly<Record<ScalarType, JsonSchema>>> = {
  [ScalarType.STRING]: { type: "string" },
  [ScalarType.BOOL]: { type: "boolean" },
  [ScalarType.BYTES]: { type: "string", contentEncoding: "base64", pattern: "^[A-Za-z0-9+/]*={0,2}$" },
  [ScalarType.DOUBLE]: { type: "number", format: "double" },
  [ScalarType.INT32]: INTEGER,
  [ScalarType.INT64]: INTEGER_64,
};

function messageSchema(message: DescMessage): JsonSchema {
  const required = message.fields.filter(isRequired).map(jsonNameOf);
  const choices = message.oneofs.filter((oneof) => oneof.fields.length > 1);
  return {
    type: "object",
    ...described(commentOf(message)),
    properties: Object.fromEntries(message.fields.map((field) => [jsonNameOf(field), fieldSchema(field)])),
    ...(required.length > 0 && { required }),
    ...oneOfSchema(choices),
  };
}

/** @throws Error if a message has several oneofs, or one that may be unset: no message has. */
function oneOfSchema([oneof, ...others]: readonly DescOneof[]): JsonSchema {
  if (oneof === undefined) return {};
  if (others.length > 0 || !commentOf(oneof).startsWith("Exactly one "))
    throw new Error(`write the schema of the oneof ${oneof.parent.typeName}.${oneof.name}`);
  return { oneOf: oneof.fields.map((field) => ({ required: [jsonNameOf(field)] })) };
}

function fieldSchema(field: DescField): JsonSchema {
  const comment = commentOf(field);
  const limits = limitsOf(field);
  const readOnly = comment.startsWith("Output only.") && { readOnly: true };
  const own = described([comment, limitText(PROTO_FILES, field)].filter((text) => text !== "").join(" "));
  switch (field.fieldKind) {
    case "list":
      return { type: "array", ...own, items: valueSchema(field), ...limits, ...readOnly };
    case "map":
      return { type: "object", ...own, additionalProperties: valueSchema(field), ...limits, ...readOnly };
    case "scalar":
    case "enum":
    case "message":
      return { ...valueSchema(field), ...own, ...limits, ...readOnly };
    default:
      return field satisfies never;
  }
}

/** Returns the schema of a field's value; for a list or a map, of one element. */
function valueSchema(field: DescField): JsonSchema {
  const type = typeOf(field);
  if (type !== undefined) return WELL_KNOWN[type.typeName] ?? schemaRef(nameOf(type));
  const schema = "scalar" in field && field.scalar !== undefined ? SCALARS[field.scalar] : undefined;
  if (schema === undefined)
    throw new Error(`write the schema of the field ${field.parent.typeName}.${field.name}`);
  return schema;
}

/** Returns the message or enum of a field's value; undefined for scalars. */
function typeOf(field: DescField): DescMessage | DescEnum | undefined {
  return field.message ?? field.enum;
}

function jsonNameOf({ jsonName }: DescField): string {
  return jsonName;
}

/** A field that is not set is missing: no value for "unspecified" is needed. */
function enumSchema(type: DescEnum): JsonSchema {
  const values = type.values.filter(({ number }) => number !== 0);
  const lines = values.map((value) => `- \`${value.name}\`: ${commentOf(value)}`);
  return {
    type: "string",
    description: [commentOf(type), lines.join("\n")].join("\n\n"),
    enum: values.map(({ name }) => name),
  };
}

function described(description: string): JsonSchema {
  return description === "" ? {} : { description };
}
