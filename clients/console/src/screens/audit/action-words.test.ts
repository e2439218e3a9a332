import { expect, it } from "vitest";
import { actionWords, denialWords } from "./actions.ts";

it.each([
  ["UpdateNamespace", "Changed namespace"],
  ["CreateTenantApiKey", "Created tenant API key"],
  ["SignIn", "Signed in"],
  ["ExplainPlan", "Explain plan"],
])("%s is said as %j", (action, words) => {
  expect(actionWords(action)).toBe(words);
});

it("the reason of a denial has words", () => {
  expect(denialWords("ROLE_DENIED")).toBe("role denied");
});
