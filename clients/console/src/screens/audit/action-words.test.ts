import { expect, it } from "vitest";
import { actionOf, actionWords, denialWords } from "./action-words.ts";

it("an action has words, which a filter reads as the action", () => {
  const words = [
    ["UpdateNamespace", "Changed namespace"],
    ["CreateTenantApiKey", "Created tenant API key"],
    ["SignIn", "Signed in"],
    ["ExplainPlan", "Explain plan"],
  ] as const;
  for (const [action, said] of words) {
    expect(actionWords(action)).toBe(said);
    expect(actionOf(said.toLowerCase())).toBe(action);
    expect(actionOf(action)).toBe(action);
  }
  expect(actionOf("")).toBe("");
  expect(denialWords("ROLE_DENIED")).toBe("role denied");
});
