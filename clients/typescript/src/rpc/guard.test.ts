import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test, vi } from "vitest";
import { ErrorInfoSchema, RetryInfoSchema } from "../gen/google/rpc/error_details_pb.ts";
import type { Claim } from "../run/claim.ts";
import { jsonCodec } from "../run/codec.ts";
import { NoEffectError, OutcomeUnknownError } from "../run/outcome-unknown.ts";
import { happened } from "../run/resolution.ts";
import { createTestingOnceward } from "../testing.ts";
import { connectFailures } from "./connect-failures.ts";
import { grpcFailures } from "./grpc-failures.ts";
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

const callWith = (key: string) => ({
  native: {},
  procedure: "/shop.v1.Charges/Create",
  key,
  fingerprint: () => 1,
  codec: jsonCodec,
});

test.each([
  ["was made too long ago", "01b8dceb-0500-7000-8000-000000000000", Code.FailedPrecondition, "KEY_TOO_OLD"],
  ["contains no time", "order-1", Code.InvalidArgument, "INVALID_REQUEST"],
])("a call whose key %s is refused, and is not handled", async (_, key, code, reason) => {
  const policy = { lateKeys: "REQUIRE_TIME", keyRetentionS: 3600 } as const;
  const { onceward } = createTestingOnceward({ now: new Date("2030-01-01T12:00:00Z"), policy });
  const guard = createCallGuard(onceward, { namespace: "charges", caller: () => "a-1" }, connectFailures);
  const handle = vi.fn();
  const error = await guard(callWith(key), handle).catch((error: unknown) => ConnectError.from(error));
  expect(error).toMatchObject({ code });
  expect(error instanceof ConnectError && error.findDetails(ErrorInfoSchema)).toMatchObject([{ reason }]);
  expect(handle).not.toHaveBeenCalled();
});

const unknown = new OutcomeUnknownError("the bank timed out");

test.each([
  ["an OutcomeUnknownError", connectFailures, unknown],
  [
    "a Connect error that it caused",
    connectFailures,
    new ConnectError("no charge", Code.FailedPrecondition, undefined, undefined, unknown),
  ],
  [
    "an error of grpc-js that it caused",
    grpcFailures,
    { code: Code.FailedPrecondition, details: "no charge", cause: unknown },
  ],
])("a handler that throws %s keeps its claim, and its caller gets that error", async (_, failures, error) => {
  const { onceward, clock } = createTestingOnceward({ policy: { onLeaseExpiry: "HOLD" } });
  const guard = createCallGuard(onceward, { namespace: "charges", caller: () => "a-1" }, failures);
  const handle = vi.fn(() => Promise.reject(error));
  await expect(guard(callWith("order-1"), handle)).rejects.toBe(error);
  await expect(guard(callWith("order-1"), handle)).rejects.toMatchObject({ code: Code.Aborted });
  clock.advance(30_000);
  await expect(guard(callWith("order-1"), handle)).rejects.toMatchObject({ code: Code.FailedPrecondition });
  expect(handle).toHaveBeenCalledOnce();
});

test.each<[what: string, error: unknown, options: Partial<RpcOptions<unknown>>, calls: number]>([
  ["DEADLINE_EXCEEDED", new ConnectError("slow", Code.DeadlineExceeded), {}, 1],
  ["CANCELLED", new ConnectError("left", Code.Canceled), {}, 1],
  ["UNKNOWN", new ConnectError("cut", Code.Unknown), {}, 1],
  ["UNAVAILABLE", new ConnectError("cut", Code.Unavailable), {}, 1],
  [
    "UNAVAILABLE with RetryInfo",
    new ConnectError("busy", Code.Unavailable, undefined, [{ desc: RetryInfoSchema, value: {} }]),
    {},
    2,
  ],
  ["INTERNAL", new ConnectError("bug", Code.Internal), {}, 2],
  ["INTERNAL under onError", new ConnectError("bug", Code.Internal), { onError: "unknown" }, 1],
  ["an error without a code under onError", new Error("bug"), { onError: "unknown" }, 1],
  ["a NoEffectError under onError", new NoEffectError("too expensive"), { onError: "unknown" }, 2],
  ["a code that `stores` calls unknown", new ConnectError("?", Code.Aborted), { stores: () => "unknown" }, 1],
])("a handler that fails with %s", async (_, error, options, calls) => {
  const { onceward, clock } = createTestingOnceward({ policy: { onLeaseExpiry: "HOLD" } });
  const all = { namespace: "charges", caller: () => "a-1", ...options };
  const guard = createCallGuard(onceward, all, connectFailures);
  const handle = vi.fn(() => Promise.reject(error));
  await expect(guard(callWith("order-1"), handle)).rejects.toBe(error);
  clock.advance(30_000);
  await expect(guard(callWith("order-1"), handle)).rejects.toThrow();
  expect(handle).toHaveBeenCalledTimes(calls);
});

test("a call whose handler marks its claim fails, although the handler answers", async () => {
  const { onceward } = createTestingOnceward();
  const guard = createCallGuard(onceward, { namespace: "charges", caller: () => "a-1" }, connectFailures);
  const marked = guard(callWith("order-1"), async (claim) => {
    claim.outcomeUnknown(new Error("the bank timed out"));
    return { message: "charged", sent: "charged" };
  });
  await expect(marked).rejects.toThrow(OutcomeUnknownError);
});

test("the message that resolve found answers the call and its repeat, which are not handled", async () => {
  const { onceward, clock } = createTestingOnceward({ policy: { onLeaseExpiry: "HOLD" } });
  const resolve = vi.fn((claim: Claim, native: unknown) => happened({ native, attempt: claim.attempt }));
  const guard = createCallGuard(
    onceward,
    { namespace: "charges", caller: () => "a-1", resolve },
    connectFailures,
  );
  await guard(callWith("order-1"), () => Promise.reject(unknown)).catch(() => {});
  clock.advance(30_000);
  const handle = vi.fn();
  for (const _ of ["first", "repeat"])
    expect(await guard(callWith("order-1"), handle)).toMatchObject({ message: { native: {}, attempt: 2 } });
  expect(resolve).toHaveBeenCalledOnce();
  expect(handle).not.toHaveBeenCalled();
});

describe.each([
  ["Connect", connectFailures],
  ["grpc-js", grpcFailures],
])("a failure with details of %s", (_, failures) => {
  const CALLER = { caller: () => "a-1" };

  test("is not stored if a guard within the handler refused: the next call asks that guard again", async () => {
    const { onceward, clock } = createTestingOnceward({ policy: { onLeaseExpiry: "HOLD" } });
    const outer = createCallGuard(onceward, { namespace: "orders", ...CALLER }, failures);
    const inner = createCallGuard(onceward, { namespace: "charges", ...CALLER }, failures);
    await expect(inner(callWith("order-1"), () => Promise.reject(unknown))).rejects.toBe(unknown);
    clock.advance(30_000);
    const handle = vi.fn(async () => {
      await inner(callWith("order-1"), vi.fn());
      return { message: "charged", sent: "charged" };
    });
    for (const calls of [1, 2]) {
      await expect(outer(callWith("order-1"), handle)).rejects.toMatchObject({
        code: Code.FailedPrecondition,
      });
      expect(handle).toHaveBeenCalledTimes(calls);
    }
  });

  test.each([
    ["of another domain", toBinary(ErrorInfoSchema, create(ErrorInfoSchema, { domain: "bank.example" }))],
    ["that is not a message", Uint8Array.of(0xff)],
  ])("is stored if it has an ErrorInfo %s", async (_, value) => {
    const { onceward } = createTestingOnceward();
    const guard = createCallGuard(onceward, { namespace: "charges", ...CALLER }, failures);
    const details = [{ type: ErrorInfoSchema.typeName, value }];
    const declined = { code: Code.FailedPrecondition, message: "declined", details };
    const handle = vi.fn(() =>
      Promise.reject(failures.make(declined, { replayed: false, cause: undefined })),
    );
    await expect(guard(callWith("order-1"), handle)).rejects.toMatchObject({ code: Code.FailedPrecondition });
    await expect(guard(callWith("order-1"), handle)).rejects.toMatchObject({ code: Code.FailedPrecondition });
    expect(handle).toHaveBeenCalledOnce();
  });
});
