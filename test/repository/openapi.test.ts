import { fileURLToPath } from "node:url";
import { createConfig, lint } from "@redocly/openapi-core";
import { expect, test } from "vitest";

const FILE = fileURLToPath(new URL("../../server/openapi.yaml", import.meta.url));

test("server/openapi.yaml is a valid OpenAPI document, and its examples match its schemas", async () => {
  const config = await createConfig({
    extends: ["recommended-strict"],
    rules: {
      "no-invalid-media-type-examples": "error",
      "no-invalid-schema-examples": "error",
      // No RPC has all responses of refusals.
      "no-unused-components": "off",
    },
  });
  const problems = await lint({ ref: FILE, config });
  expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual(
    [],
  );
});
