import { create } from "@bufbuild/protobuf";
import { Policy_LateKeys, PolicySchema, QuotasSchema } from "@onceward/client/proto";
import { expect, test } from "vitest";
import { fieldText, type TypedField, typedFields } from "./field-facts.ts";

const FIELDS = new Map(
  [PolicySchema, QuotasSchema].flatMap(typedFields).map((field) => [field.path, field] as const),
);

function fieldOf(path: string): TypedField {
  const field = FIELDS.get(path);
  if (field === undefined) throw new Error(`no field ${path}`);
  return field;
}

test.each([
  ["key_retention", "72 h", { seconds: 259_200n }, "72h"],
  ["default_lease", "90 min", { seconds: 5400n }, "90m"],
  ["max_result_bytes", "64 kib", 65_536, "64KiB"],
  ["late_keys", "require_time", Policy_LateKeys.REQUIRE_TIME, "require-time"],
  ["late_keys", "LATE_KEYS_REQUIRE_TIME", Policy_LateKeys.REQUIRE_TIME, "require-time"],
  ["require_fingerprint", "False", false, "false"],
  ["provider_link", "https://pay.example/{key}", "https://pay.example/{key}", "https://pay.example/{key}"],
  ["stored_bytes", "5GiB", 5n * 1024n ** 3n, "5GiB"],
  ["burst", "1,000", 1000, "1000"],
  ["dry_run", "true", true, "true"],
])("%s reads %s", (path, text, value, written) => {
  const { kind } = fieldOf(path);
  const read = kind.parse(text);
  expect(read).toEqual(typeof value === "object" ? expect.objectContaining(value) : value);
  expect(kind.format(read)).toBe(written);
});

test.each([
  ["key_retention", "soon"],
  ["max_result_bytes", "2GiB"],
  ["late_keys", "unspecified"],
  ["late_keys", "time"],
  ["require_fingerprint", "yes"],
  ["burst", "2147483648"],
  ["burst", "1.5"],
])("%s does not read %s", (path, text) => {
  expect(fieldOf(path).kind.parse(text)).toBeUndefined();
});

test("a field says its range and what applies where it is not set", () => {
  expect(fieldOf("key_retention").help).toMatch(/; 1m to 400d; 72h unless set$/);
  expect(fieldOf("result_retention").help).toMatch(/; 1m to 400d; as the key retention unless set$/);
  expect(fieldOf("live_records").help).toBe("stored records");
  const unset = ["max_result_bytes", "burst", "live_records", "provider_link", "dry_run"];
  expect(unset.map((path) => fieldOf(path).unset)).toEqual([
    "64KiB",
    "as the operations per second",
    "unlimited",
    "none",
    "false",
  ]);
});

test("a field that is not set has no text", () => {
  const texts = [PolicySchema, QuotasSchema].flatMap((schema) =>
    typedFields(schema).map((field) => fieldText(field, create(schema))),
  );
  expect(new Set(texts)).toEqual(new Set([""]));
  expect(fieldText(fieldOf("burst"), undefined)).toBe("");
});
