import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { ErrorReasonSchema } from "../../clients/typescript/src/gen/onceward/v1/errors_pb.ts";

const FILE = new URL("../../clients/conformance/cases/errors.json", import.meta.url);
const { cases } = JSON.parse(readFileSync(FILE, "utf8")) as {
  readonly cases: readonly {
    readonly service: readonly { readonly error?: { readonly reason: string } }[];
  }[];
};

test("every reason of the service has a case", () => {
  const reasons = cases.map(({ service: [first] }) => first?.error?.reason);
  expect(reasons).toEqual(
    expect.arrayContaining(ErrorReasonSchema.values.slice(1).map((each) => each.localName)),
  );
});
