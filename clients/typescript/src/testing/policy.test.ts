import { expect, test } from "vitest";
import { createTestingOnceward } from "./onceward.ts";

test.each([
  [{ keyRetentionMs: 1000 }, /^keyRetentionMs is not a field of a policy: keyRetentionS, /],
  [{ keyRetentionS: "14d" }, /^keyRetentionS must be a whole number above 0$/],
  [{ defaultLeaseMs: 0.5 }, /^defaultLeaseMs must be a whole number above 0$/],
  [{ onLeaseExpiry: "hold" }, /^onLeaseExpiry must be RECLAIM, HOLD$/],
  [{ requireFingerprint: 1 }, /^requireFingerprint must be false, true$/],
])("a policy that the service does not know is refused: %j", (policy, message) => {
  const refused = expect.objectContaining({ name: "TypeError", message: expect.stringMatching(message) });
  expect(() => createTestingOnceward({ policy: policy as object })).toThrow(refused);
  expect(() => createTestingOnceward({ namespaces: { charges: policy as object } })).toThrow(refused);
});
