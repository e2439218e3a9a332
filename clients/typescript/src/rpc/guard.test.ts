import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test, vi } from "vitest";
import { ErrorInfoSchema } from "../gen/google/rpc/error_details_pb.ts";
import { jsonCodec } from "../run/codec.ts";
import { createTestingOnceward } from "../testing.ts";
import { connectFailures } from "./connect-failures.ts";
import { createCallGuard } from "./guard.ts";
import type { RpcOptions } from "./options.ts";

test.each([
  ["caller", undefined],
  ["key", "request_id"],
  ["fingerprint", {}],
  ["stores", [3]],
  ["required", 0],
  ["namespace", "Charges"],
  ["leaseMs", 5],
  ["waitMs", -1],
])("the option %s is checked when the guard is made: %j", (field, value) => {
  const { onceward } = createTestingOnceward();
  const options = { namespace: "charges", caller: () => "a-1", [field]: value } as RpcOptions<unknown>;
  const violations = [expect.objectContaining({ field })];
  expect(() => createCallGuard(onceward, options, connectFailures)).toThrow(
    expect.objectContaining({ violations }),
  );
});

test.each([
  ["was made too long ago", "01b8dceb-0500-7000-8000-000000000000", Code.FailedPrecondition, "KEY_TOO_OLD"],
  ["contains no time", "order-1", Code.InvalidArgument, "INVALID_REQUEST"],
])("a call whose key %s is refused, and is not handled", async (_, key, code, reason) => {
  const policy = { lateKeys: "REQUIRE_TIME", keyRetentionS: 3600 } as const;
  const { onceward } = createTestingOnceward({ now: new Date("2030-01-01T12:00:00Z"), policy });
  const guard = createCallGuard(onceward, { namespace: "charges", caller: () => "a-1" }, connectFailures);
  const call = {
    native: {},
    procedure: "/shop.v1.Charges/Create",
    key,
    fingerprint: () => 1,
    codec: jsonCodec,
  };
  const handle = vi.fn();
  const error = await guard(call, handle).catch((error: unknown) => ConnectError.from(error));
  expect(error).toMatchObject({ code });
  expect(error instanceof ConnectError && error.findDetails(ErrorInfoSchema)).toMatchObject([{ reason }]);
  expect(handle).not.toHaveBeenCalled();
});
