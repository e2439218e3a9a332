import { expect, it } from "vitest";
import { actionWords, denialWords, deniedWords } from "./actions.ts";

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

it("a denied action is said as it was asked, not as done", () => {
  const denied = ["UpdateNamespace", "ListNamespaces", "GetTenant", "SignIn"].map(deniedWords);
  expect(denied).toEqual(["Change namespace", "List namespaces", "Read tenant", "Sign in"]);
});
