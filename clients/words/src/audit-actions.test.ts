import { AuditEvent_Outcome } from "@onceward/client/proto";
import { expect, it } from "vitest";
import { isByOperator } from "./audit-actions.ts";

it.each([
  ["CreateTenantApiKey", AuditEvent_Outcome.DONE, true],
  ["CreateApiKey", AuditEvent_Outcome.DONE, false],
  ["CreateTenantApiKey", AuditEvent_Outcome.DENIED, false],
])("%s with outcome %i is an operator's: %s", (action, outcome, expected) => {
  expect(isByOperator({ action, outcome })).toBe(expected);
});
