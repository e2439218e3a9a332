import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { BadRequestSchema, ErrorInfoSchema } from "../gen/google/rpc/error_details_pb.ts";
import { readServiceError } from "./service-error.ts";

test("an ErrorInfo of another domain is not the service's", () => {
  const proxy = { desc: ErrorInfoSchema, value: { reason: "RATE_LIMIT_EXCEEDED", domain: "proxy.example" } };
  const fieldViolations = [{ field: "key", description: "must be set" }];
  const invalid = { desc: BadRequestSchema, value: { fieldViolations } };
  const own = { desc: ErrorInfoSchema, value: { reason: "INVALID_REQUEST", domain: "onceward" } };
  const errorWith = (...details: ConstructorParameters<typeof ConnectError>[3] & object) =>
    new ConnectError("refused", Code.InvalidArgument, undefined, details);
  expect(readServiceError(errorWith(proxy, invalid))).toBeUndefined();
  expect(readServiceError(errorWith(proxy, own, invalid))).toEqual({
    reason: "INVALID_REQUEST",
    metadata: {},
    violations: fieldViolations,
    retryDelayMs: undefined,
    requestId: undefined,
  });
});
