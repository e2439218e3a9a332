import type { FieldMask } from "@bufbuild/protobuf/wkt";
import type { Violations } from "../messages/violations.ts";

/**
 * The fields that an update sets, of those that can be, by their names in the proto behind their message's:
 * "policy.key_retention". AIP-134: no mask means the fields that the request sets; "*" means all; a message's name means
 * all of its fields. Adds a violation for every other path.
 */
export function maskedFields(
  mask: FieldMask | undefined,
  fields: readonly string[],
  isSet: (field: string) => boolean,
  violations: Violations,
): ReadonlySet<string> {
  const paths = mask?.paths ?? [];
  if (paths.length === 0) return new Set(fields.filter(isSet));
  const masked = new Set<string>();
  for (const path of paths) {
    const named = fields.filter((field) => path === "*" || field === path || field.startsWith(`${path}.`));
    if (named.length === 0) {
      violations.add("update_mask", `must name fields that can be set: ${fields.join(", ")}`);
    }
    for (const field of named) masked.add(field);
  }
  return masked;
}
