import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RequestInfoSchema,
  RetryInfoSchema,
} from "../gen/google/rpc/error_details_pb.ts";
import { ErrorReason } from "../gen/onceward/v1/errors_pb.ts";
import { BatchItemErrorSchema } from "../gen/onceward/v1/idempotency_pb.ts";
import { OncewardError } from "./errors.ts";
import { errorAbout, errorFromCall, errorFromItem, errorOf, isAboutContent, isRetryable } from "./mapping.ts";

test("a batch item's error is the same as the one its call would have failed with alone", () => {
  const fieldViolations = [{ field: "key", description: "must be 1-255 bytes, is 0" }];
  const metadata = { limit_bytes: "65536" };
  const retryDelay = durationFromMs(250);
  const cause = new ConnectError("busy", Code.Unavailable, undefined, [
    { desc: ErrorInfoSchema, value: { reason: "OVERLOADED", domain: "onceward", metadata } },
    { desc: RetryInfoSchema, value: { retryDelay } },
    { desc: RequestInfoSchema, value: { requestId: "request-1" } },
    { desc: BadRequestSchema, value: { fieldViolations } },
  ]);
  const item = create(BatchItemErrorSchema, {
    code: Code.Unavailable,
    reason: ErrorReason.OVERLOADED,
    message: "busy",
    metadata,
    fieldViolations,
    retryDelay,
    requestId: "request-1",
  });
  const expected = {
    reason: "OVERLOADED",
    message: "busy",
    code: Code.Unavailable,
    metadata,
    violations: fieldViolations,
    retryDelayMs: 250,
    requestId: "request-1",
  };
  expect(errorFromCall(cause)).toMatchObject({ ...expected, cause });
  expect(errorFromItem(item)).toMatchObject(expected);
  const about = errorAbout({ namespace: "charges", key: "k", fencingToken: undefined }, errorFromItem(item));
  expect(about).toMatchObject({ requestId: "request-1" });
  expect(JSON.parse(JSON.stringify(about))).toMatchObject({ requestId: "request-1" });
});

test("an error that did not come from Onceward says so, and keeps its cause", () => {
  const cause = new ConnectError("connect ECONNREFUSED", Code.Unavailable);
  expect(errorFromCall(cause)).toMatchObject({ reason: "NO_ANSWER", code: Code.Unavailable, cause });
});

test.each([
  ["a database that is away", "DATABASE_UNAVAILABLE", { code: Code.Unavailable }, true],
  ["a deadline that passed", "DEADLINE_EXCEEDED", { code: Code.DeadlineExceeded }, true],
  ["a quota with a time to come back", "QUOTA", { code: Code.ResourceExhausted, retryDelayMs: 100 }, true],
  ["a connection that broke", "NO_ANSWER", { code: Code.Aborted }, true],
  ["a claim that was superseded", "CLAIM_SUPERSEDED", { code: Code.Aborted }, false],
  ["a fingerprint mismatch", "FINGERPRINT_MISMATCH", { code: Code.FailedPrecondition }, false],
  ["a bad credential", "CREDENTIAL_INVALID", { code: Code.Unauthenticated }, false],
  ["a bug", "INTERNAL", { code: Code.Internal }, false],
])("whether a call is repeated after %s", (_, reason, facts, repeated) => {
  expect(isRetryable(new OncewardError(reason, "", facts))).toBe(repeated);
});

test("a call that a draining server refused is retried, although Connect calls it internal", () => {
  const beneath = Object.assign(new Error("Stream closed with error code NGHTTP2_REFUSED_STREAM"), {
    code: "ERR_HTTP2_STREAM_ERROR",
  });
  const refused = errorFromCall(new ConnectError("refused", Code.Internal, undefined, undefined, beneath));
  expect([isRetryable(refused), isAboutContent(refused)]).toEqual([true, false]);
  const unencodable = errorFromCall(
    new ConnectError("invalid int64", Code.Internal, undefined, undefined, new Error()),
  );
  expect([isRetryable(unencodable), isAboutContent(unencodable)]).toEqual([false, true]);
});

test("an error is copied for its claim, with its class and facts, and named once", () => {
  const claim = { namespace: "charges", key: 'order-"1"', fencingToken: 7n };
  const cause = new Error("beneath");
  const violations = [{ field: "lease", description: "is too long" }];
  const shared = errorOf("OVERLOADED", "busy", { retryDelayMs: 5, violations, cause });
  const named = errorAbout(claim, shared);
  expect(named.constructor).toBe(shared.constructor);
  expect(named).toMatchObject({ reason: "OVERLOADED", retryDelayMs: 5, violations, cause, claim });
  expect(named.message).toBe('busy (namespace charges, key "order-\\"1\\"", fencing token 7)');
  expect(shared).toMatchObject({ claim: undefined, message: "busy" });
  expect(errorAbout({ ...claim, key: "order-2" }, named)).toBe(named);
});
