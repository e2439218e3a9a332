import { ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { Refusal } from "../domain/refusal.ts";
import { FailedCall, toConnectError } from "./errors.ts";

test.each<[delay: number | undefined, protocol: string, header: string | null]>([
  [undefined, "connect", null],
  [0, "connect", "1"],
  [100, "connect", "1"],
  [2000, "connect", "2"],
  [2001, "connect", "3"],
  [2001, "grpc-web", null],
])("a delay of %s ms over %s is the Retry-After %s", (delay, protocol, header) => {
  const refusal = new Refusal("OVERLOADED", "busy", delay === undefined ? {} : { retryAfterMs: delay });
  const error = toConnectError(new FailedCall(refusal, "request-1"), protocol) as ConnectError;
  expect(error).toBeInstanceOf(ConnectError);
  expect(error.metadata.get("retry-after")).toBe(header);
});
