import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ApiKey_Role, WhoAmIResponseSchema } from "@onceward/client/proto";
import { expect, test } from "vitest";
import { checkTls, judgeClock, judgeIdentity } from "./connection-checks.ts";

const SENT_MS = 1_000_000;
const ANSWERED_MS = SENT_MS + 100;

test.each([
  ["during the call", SENT_MS + 50, "ok", "agrees"],
  ["a second before it", SENT_MS - 1000, "ok", "agrees"],
  ["3 s before it", SENT_MS - 3000, "warning", "3.0 s ahead of"],
  ["3 s after it", ANSWERED_MS + 3000, "warning", "3.0 s behind"],
])("a service whose clock reads a time %s", (_, serverMs, result, detail) => {
  const found = judgeClock(serverMs, SENT_MS, ANSWERED_MS);
  expect(found).toMatchObject({ check: "clock", result, detail: expect.stringContaining(detail) });
});

test("a slow call alone is not a difference of clocks", () => {
  expect(judgeClock(SENT_MS + 10, SENT_MS, SENT_MS + 30_000).result).toBe("ok");
});

test("a key that expires within two weeks is a warning", () => {
  const at = (days: number) => {
    const expiresAt = timestampFromMs(Date.now() + days * 86_400_000);
    return judgeIdentity("any", create(WhoAmIResponseSchema, { role: ApiKey_Role.CALLER, expiresAt })).result;
  };
  expect([at(13), at(15)]).toEqual(["warning", "ok"]);
});

test.each([
  ["http://localhost:50051", "ok"],
  ["http://127.0.0.1:50051", "ok"],
  ["http://[::1]:50051", "ok"],
  ["http://onceward.example:50051", "warning"],
  ["http://127.evil.example:50051", "warning"],
])("plain text to %s: %s", async (address, result) => {
  expect(await checkTls(new URL(address))).toMatchObject({ result });
});
