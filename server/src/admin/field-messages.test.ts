import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { DEFAULT_POLICY } from "../domain/policy.ts";
import { WIDEST_BOUNDS } from "../domain/policy-bounds.ts";
import type { Quotas } from "../domain/quotas.ts";
import { Violations } from "../domain/violations.ts";
import {
  type Policy_OnLeaseExpiry,
  PolicyBoundsSchema,
  PolicySchema,
  QuotasSchema,
} from "../gen/onceward/v1/policy_pb.ts";
import { maskedFields } from "./field-messages.ts";
import { BOUND_MESSAGES, POLICY_MESSAGES, QUOTA_MESSAGES } from "./policy-messages.ts";

const QUOTAS: Quotas = {
  operationsPerSecond: 1,
  burst: 2,
  concurrentCalls: 3,
  liveRecords: 5_000_000_000,
  storedBytes: Number.MAX_SAFE_INTEGER,
  declaredNamespaces: 4,
  weight: 5,
  dryRun: true,
};

function noViolations<Value>(parse: (violations: Violations) => Value): Value {
  const violations = new Violations();
  const value = parse(violations);
  violations.throwIfAny();
  return value;
}

test("every field is read as it was written", () => {
  const providerLink = "https://pay.example/{key}";
  // A text that is unset is not written.
  const unset = Object.entries(DEFAULT_POLICY).filter(([, value]) => value === "");
  const texts = Object.fromEntries(unset.map(([name]) => [name, "text"]));
  const policy = { ...DEFAULT_POLICY, ...texts, onLeaseExpiry: "HOLD", providerLink } as const;
  expect(
    noViolations((violations) => POLICY_MESSAGES.parse(POLICY_MESSAGES.write(policy), violations)),
  ).toEqual(policy);
  expect(
    noViolations((violations) => BOUND_MESSAGES.parse(BOUND_MESSAGES.write(WIDEST_BOUNDS), violations)),
  ).toEqual(WIDEST_BOUNDS);
  expect(
    noViolations((violations) => QUOTA_MESSAGES.parse(QUOTA_MESSAGES.write(QUOTAS), violations)),
  ).toEqual(QUOTAS);
});

test("a field that is unset in the message is unset in the domain", () => {
  const message = create(PolicySchema, { requireFingerprint: false, maxResultBytes: 0 });
  expect(noViolations((violations) => POLICY_MESSAGES.parse(message, violations))).toEqual({
    requireFingerprint: false,
    maxResultBytes: 0,
  });
  expect(POLICY_MESSAGES.pathsOf(message)).toEqual(["policy.max_result_bytes", "policy.require_fingerprint"]);
  expect(QUOTA_MESSAGES.pathsOf(create(QuotasSchema))).toEqual([]);
  expect(POLICY_MESSAGES.pathsOf(undefined)).toEqual([]);
});

test("a duration of a fraction of a second is rounded up to whole seconds", () => {
  const message = create(PolicySchema, { keyRetention: { seconds: 60n, nanos: 1 } });
  expect(noViolations((violations) => POLICY_MESSAGES.parse(message, violations)).keyRetentionS).toBe(61);
});

test("a value out of its range is a violation of its path", () => {
  const violations = new Violations();
  POLICY_MESSAGES.parse(create(PolicySchema, { onLeaseExpiry: 7 as Policy_OnLeaseExpiry }), violations);
  BOUND_MESSAGES.parse(create(PolicyBoundsSchema, { minKeyRetention: { seconds: 59n } }), violations);
  QUOTA_MESSAGES.parse(create(QuotasSchema, { weight: 101, storedBytes: 0n }), violations);
  expect(() => violations.throwIfAny()).toThrow(
    "policy.on_lease_expiry must be ON_LEASE_EXPIRY_RECLAIM or ON_LEASE_EXPIRY_HOLD; " +
      "policy_bounds.min_key_retention must be between 1 min and 400 days; " +
      "quotas.stored_bytes must be between 1 and 9007199254740991; " +
      "quotas.weight must be between 1 and 100",
  );
});

test("a link leads to the provider's own https site, with any key in it", () => {
  const parse = (providerLink: string) =>
    noViolations((violations) => POLICY_MESSAGES.parse(create(PolicySchema, { providerLink }), violations));
  const taken = [
    "https://pay.example/search?q={key}&worker={owner}#{key}",
    "https://pay.example:8443?{key}",
    "https://[::1]/{key}",
  ];
  for (const providerLink of taken) expect(parse(providerLink)).toEqual({ providerLink });
  const refused = [
    "javascript:alert({key})",
    "http://pay.example/{key}",
    "https://user:secret@pay.example/{key}",
    "https://{key}/",
    "https://pay.example{key}/x",
    "https://pay.example:{key}/x",
    "https://pay.example/",
    "https://pay.example/{key}/{tenant}",
    "https://pay.example/{key}\n",
    "https://pay.example/é{key}",
  ];
  const rule = "policy.provider_link must be an https URL";
  for (const link of refused) expect(() => parse(link), link).toThrow(rule);
  const long = `https://pay.example/{key}${"x".repeat(512)}`;
  expect(() => parse(long)).toThrow("policy.provider_link must be at most 512 bytes");
});

test("a merge takes masked fields from the request, and clears those that it leaves unset", () => {
  const mask = new Set(["policy.max_lease", "policy.default_lease"]);
  expect(
    POLICY_MESSAGES.merge(
      { maxLeaseMs: 1000, defaultLeaseMs: 1000, maxResultBytes: 1 },
      { maxLeaseMs: 2000, maxResultBytes: 2 },
      mask,
    ),
  ).toEqual({ maxLeaseMs: 2000, defaultLeaseMs: undefined, maxResultBytes: 1 });
});

test("an update mask names single fields, a whole message or everything", () => {
  const fields = { paths: [...BOUND_MESSAGES.paths, ...QUOTA_MESSAGES.paths], set: ["quotas.burst"] };
  const masked = (...paths: string[]) =>
    noViolations((violations) => [
      ...maskedFields({ $typeName: "google.protobuf.FieldMask", paths }, fields, violations),
    ]);
  expect(masked()).toEqual(["quotas.burst"]);
  expect(masked("quotas.weight")).toEqual(["quotas.weight"]);
  expect(masked("quotas")).toEqual(QUOTA_MESSAGES.paths);
  expect(masked("*")).toEqual(fields.paths);
  expect(() => masked("policy")).toThrow("update_mask must name fields that can be set");
});
