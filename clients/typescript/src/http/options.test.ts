import { expect, test } from "vitest";
import { InvalidRequestError } from "../errors/catalogue.ts";
import { type HttpOptions, httpPolicy } from "./options.ts";

const options: HttpOptions<unknown> = { namespace: "charges", caller: () => "a-1" };

/** Options as a program in JavaScript may pass them. */
function policyWith(wrong: Readonly<Record<string, unknown>>) {
  return httpPolicy({ ...options, ...wrong } as HttpOptions<unknown>);
}

test.each(["Set-Cookie", "connection", "Transfer-Encoding", "content-length"])(
  "%s is never replayed",
  (name) => {
    expect(() => policyWith({ replayHeaders: [name] })).toThrow(InvalidRequestError);
  },
);

test("methods count in any case", () => {
  expect(policyWith({ methods: ["post", "Put"] }).methods).toEqual(new Set(["POST", "PUT"]));
});

test.each([
  ["methods", "POST"],
  ["methods", []],
  ["methods", ["PSOT"]],
  ["methods", [undefined]],
  ["replayHeaders", "x-request-id"],
  ["caller", undefined],
  ["fingerprint", "body"],
  ["stores", [200]],
  ["problemBody", {}],
  ["required", "false"],
  ["abandonAfterMs", -1],
  ["namespace", "Charges"],
  ["namespace", undefined],
  ["leaseMs", 5],
  ["waitMs", -1],
  ["timeoutMs", Number.NaN],
  ["owner", 7],
  ["onUnavailable", "run"],
  ["operation", ""],
  ["operation", 7],
  ["header", "X Request Id"],
])("the option %s is checked when the guard is made: %j", (field, value) => {
  const violations = [expect.objectContaining({ field })];
  expect(() => policyWith({ [field]: value })).toThrow(expect.objectContaining({ violations }));
});

test("a profile's own scope and header can't be replaced", () => {
  expect(() => policyWith({ profile: "stripe", operation: "charge" })).toThrow("operation must not be set");
  expect(() => policyWith({ profile: "ietf", header: "X-Request-Id" })).toThrow(
    "header must be Idempotency-Key",
  );
  expect(policyWith({ profile: "ietf", header: "Idempotency-Key" }).header).toBe("Idempotency-Key");
});

test("a response that asks for another attempt is not stored", () => {
  const { stores: judge } = httpPolicy(options);
  const stores = (status: number) =>
    judge({ status, headers: {}, body: undefined, json: undefined }) === true;
  const released = Array.from({ length: 500 }, (_, index) => 100 + index).filter((status) => !stores(status));
  expect(released.filter((status) => status < 500)).toEqual([401, 408, 425, 429]);
  expect(released.filter((status) => status >= 500)).toHaveLength(100);
});
