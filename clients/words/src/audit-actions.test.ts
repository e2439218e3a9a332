import { AuditEvent_Outcome, IdempotencyService } from "@onceward/client/proto";
import { expect, it } from "vitest";
import { actionOf, CALLER_ACTIONS, isByOperator } from "./audit-actions.ts";

it.each([
  ["CreateTenantApiKey", AuditEvent_Outcome.DONE, true],
  ["CreateApiKey", AuditEvent_Outcome.DONE, false],
  ["CreateTenantApiKey", AuditEvent_Outcome.DENIED, false],
])("%s with outcome %i is an operator's: %s", (action, outcome, expected) => {
  expect(isByOperator({ action, outcome })).toBe(expected);
});

it.each([
  ["", ""],
  ["updatenamespace", "UpdateNamespace"],
  ["Claim", "Claim"],
  ["update", undefined],
])("%j is the action %j", (text, action) => {
  expect(actionOf(text)).toBe(action);
});

it("the calls of services are those of their contract", () => {
  expect(CALLER_ACTIONS).toEqual(IdempotencyService.methods.map(({ name }) => name));
});
