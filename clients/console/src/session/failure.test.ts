import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "@onceward/gen/google/rpc/error_details_pb.ts";
import { expect, test } from "vitest";
import { readFailure } from "./failure.ts";

const errorOf = (domain: string) =>
  new ConnectError("busy", Code.Unavailable, { "x-request-id": "request-1" }, [
    { desc: ErrorInfoSchema, value: { reason: "OVERLOADED", domain } },
  ]);

test("a failure has the service's reason, and the request id of the headers", () => {
  expect(readFailure(errorOf("onceward"))).toMatchObject({
    code: Code.Unavailable,
    reason: "OVERLOADED",
    message: "busy",
    requestId: "request-1",
  });
});

test("a proxy's reason is not the service's; a failure without an answer has no request id", () => {
  expect(readFailure(errorOf("proxy.example"))).toMatchObject({ reason: "", violations: [] });
  expect(readFailure(new TypeError("Failed to fetch"))).toMatchObject({ requestId: undefined, reason: "" });
});
