import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { PolicyBoundsSchema, QuotasSchema } from "@onceward/gen/onceward/v1/policy_pb.ts";
import { expect, it } from "vitest";
import { LIMIT_DRAFTS, LIMIT_FIELDS, type LimitTexts, limitTexts, parseLimits } from "./limit-fields.ts";

const LIMITS = {
  quotas: create(QuotasSchema, { operationsPerSecond: 500, storedBytes: 5n * 1024n ** 3n, dryRun: true }),
  policyBounds: create(PolicyBoundsSchema, {
    maxKeyRetention: { seconds: 30n * 86_400n },
    maxResultBytes: 1500,
  }),
};
const TEXTS = limitTexts(LIMITS);
const draftOf = (typed: LimitTexts) => ({ ...LIMIT_DRAFTS.start({ etag: "a", own: TEXTS }), typed });
const ALL = LIMIT_FIELDS.map(({ path }) => path);

it("limits are written as they are typed, and read as they were", () => {
  expect(Object.entries(TEXTS).filter(([, text]) => text !== "")).toEqual([
    ["quotas.operations_per_second", "500"],
    ["quotas.stored_bytes", "5GiB"],
    ["quotas.dry_run", "true"],
    ["policy_bounds.max_key_retention", "30d"],
    ["policy_bounds.max_result_bytes", "1500"],
  ]);
  const { quotas, policyBounds, problems } = parseLimits(TEXTS, ALL);
  expect(problems).toEqual({});
  expect(create(QuotasSchema, quotas)).toEqual(LIMITS.quotas);
  expect(policyBounds).toEqual({
    maxKeyRetention: durationFromMs(30 * 86_400_000),
    maxResultBytes: 1500,
  });
});

it("what can't be read has a problem, and only the fields that are sent are read", () => {
  const texts = {
    ...TEXTS,
    "quotas.burst": "many",
    "quotas.declared_namespaces": "2147483648",
    "quotas.weight": "1.5",
    "policy_bounds.max_lease": "1",
  };
  expect(Object.keys(parseLimits(texts, ALL).problems)).toEqual([
    "quotas.burst",
    "quotas.weight",
    "quotas.declared_namespaces",
    "policy_bounds.max_lease",
  ]);
  expect(parseLimits(texts, ["quotas.operations_per_second"])).toEqual({
    quotas: { operationsPerSecond: 500 },
    policyBounds: {},
    problems: {},
  });
});

it("the same value in another form is not a change", () => {
  const same = {
    ...TEXTS,
    "quotas.stored_bytes": "5120 MiB",
    "policy_bounds.max_key_retention": " 720 h",
    "quotas.operations_per_second": "0500",
  };
  expect(LIMIT_DRAFTS.changed(draftOf(same))).toEqual([]);
  expect(LIMIT_DRAFTS.changed(draftOf({ ...TEXTS, "quotas.dry_run": "" }))).toEqual(["quotas.dry_run"]);
});

it("a change of another person is shown, and what was typed stays", () => {
  const typed = { ...TEXTS, "quotas.operations_per_second": "900" };
  const latest = { ...TEXTS, "quotas.operations_per_second": "100", "quotas.weight": "3" };
  const followed = LIMIT_DRAFTS.follow(draftOf(typed), { etag: "b", own: latest });
  expect(followed.typed).toEqual({ ...latest, "quotas.operations_per_second": "900" });
  expect(followed.savedByOthers).toEqual([
    { field: "quotas.operations_per_second", before: "500", now: "100", typed: "900" },
    { field: "quotas.weight", before: "", now: "3", typed: undefined },
  ]);
});

it("the form's own change is not shown as another's", () => {
  const typed = { ...TEXTS, "quotas.operations_per_second": "0900" };
  const latest = { ...TEXTS, "quotas.operations_per_second": "900" };
  expect(LIMIT_DRAFTS.follow(draftOf(typed), { etag: "b", own: latest })).toMatchObject({
    typed: latest,
    savedByOthers: [],
  });
});
