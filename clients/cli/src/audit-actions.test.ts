import { expect, test } from "vitest";
import { parseAction } from "./audit-actions.ts";

test.each([
  ["ResolveRecord", "ResolveRecord"],
  ["resolverecord", "ResolveRecord"],
  ["SignOutEverywhere", "SignOutEverywhere"],
  ["Claim", "Claim"],
])("%s is the action %s", (text, action) => {
  expect(parseAction(text)).toBe(action);
});

test.each([
  ["update", /^There is no such action\. Did you mean UpdateNamespace, UpdateTenant, UpdateTenantLimits\?$/],
  ["ResolveRecrod", /^There is no such action\. Did you mean ResolveRecord\?$/],
  [
    "unknown",
    /^There is no such action\. Changes are CancelRecordJob, .*CreateApiKey.*, UpdateTenantLimits\.$/,
  ],
  ["", /^There is no such action\. Changes are /],
])("%j is refused with the actions that it may mean", (text, refusal) => {
  expect(() => parseAction(text)).toThrow(refusal);
});
