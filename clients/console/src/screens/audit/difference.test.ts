import { expect, it } from "vitest";
import { differences } from "./difference.ts";

it("only values that differ are shown, with their units", () => {
  expect(
    differences(
      { keyRetentionS: 259_200, maxLeaseMs: 900_000, maxResultBytes: 1024, role: "CALLER" },
      {
        keyRetentionS: 691_200,
        maxLeaseMs: 900_000,
        defaultLeaseMs: 90_000,
        maxResultBytes: 2048,
        role: "TENANT_ADMIN",
        recordJob: "7",
      },
    ),
  ).toEqual([
    { label: "Key retention", before: "72h", after: "8d" },
    { label: "Max result bytes", before: "1KiB", after: "2KiB" },
    { label: "Role", before: "caller", after: "tenant admin" },
    { label: "Default lease", before: undefined, after: "90s" },
    { label: "Record job", before: undefined, after: "7" },
  ]);
});

it("values inside of others are shown with both names; null and an empty object are not values", () => {
  const quotas = { liveRecords: 1_000, dryRun: false };
  expect(differences({ quotas, policyBounds: {} }, { quotas: { dryRun: true, liveRecords: null } })).toEqual([
    { label: "Quotas: live records", before: "1,000", after: undefined },
    { label: "Quotas: dry run", before: "no", after: "yes" },
  ]);
});

it("lists are compared as a whole", () => {
  expect(differences({ namespaces: ["a", "b"] }, { namespaces: ["a", "b"] })).toEqual([]);
  expect(differences({ namespaces: ["a"] }, { namespaces: [] })).toEqual([
    { label: "Namespaces", before: "a", after: "none" },
  ]);
});

it("a creation has no values before, and a deletion none after", () => {
  expect(differences(undefined, { role: "CALLER" })).toEqual([
    { label: "Role", before: undefined, after: "caller" },
  ]);
  expect(differences({ role: "CALLER" }, undefined)).toEqual([
    { label: "Role", before: "caller", after: undefined },
  ]);
});

it("times have their zone, and texts stay as they are", () => {
  const [expiry] = differences({}, { expiresAt: "2026-11-23T18:06:17.000Z" });
  expect(expiry?.after).toMatch(/^2026-11-2\d \d\d:06:17 \S+$/);
  const [label] = differences({}, { label: "<b>\u202Eevil" });
  expect(label?.after).toBe("<b>\u202Eevil");
});
