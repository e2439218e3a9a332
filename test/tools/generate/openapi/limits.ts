import { type DescField, ScalarType } from "@bufbuild/protobuf";
import { factsOf } from "../../../../server/src/core/domain/fields.ts";
import type { JsonSchema } from "./json-schema.ts";
import { PROTO_FILES } from "./proto-files.ts";

/** Returns whether a request is refused without a field. */
export function isRequired(field: DescField): boolean {
  return factsOf(field, PROTO_FILES).required;
}

/** Returns the limits of a field as JSON Schema has them. Those of durations and of policies are in the fields' descriptions. */
export function limitsOf(field: DescField): JsonSchema {
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
