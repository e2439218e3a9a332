import { create } from "@bufbuild/protobuf";
import { Policy_LateKeys, Policy_OnLeaseExpiry, PolicySchema } from "@onceward/client/admin";
import { expect, test } from "vitest";
import { POLICY_FIELDS, policyRows } from "./policy-fields.ts";

const POLICY = create(PolicySchema, {
  keyRetention: { seconds: 60n },
  resultRetention: { seconds: 61n },
  failureRetention: { seconds: 62n },
  defaultLease: { seconds: 63n },
  maxLease: { seconds: 64n },
  onLeaseExpiry: Policy_OnLeaseExpiry.HOLD,
  maxResultBytes: 65,
  lateKeys: Policy_LateKeys.REFUSE,
  requireFingerprint: true,
  providerLink: "https://pay.example/{key}",
});

test("every field of a policy has an option", () => {
  expect(POLICY_FIELDS.map(({ path }) => path).sort()).toEqual(
    PolicySchema.fields.map(({ name }) => name).sort(),
  );
});

test("every field of a policy is printed, under its name", () => {
  for (const { localName, name } of PolicySchema.fields) {
    const only = create(PolicySchema, { [localName]: POLICY[localName as keyof typeof POLICY] });
    const set = policyRows(only).filter(([, value]) => value !== "-");
    expect([name, set]).toEqual([name, [[name.replaceAll("_", " "), expect.stringMatching(/./)]]]);
  }
});
