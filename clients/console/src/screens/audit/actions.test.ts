import { expect, it } from "vitest";
import { ACTION_OPTIONS, actionWords, denialWords, deniedWords, unknownAction } from "./actions.ts";

it("the actions are those of every service, sorted by their words", () => {
  expect(ACTION_OPTIONS).toMatchObject({ UpdateNamespace: "Changed namespace", SignIn: "Signed in" });
  const words = Object.values(ACTION_OPTIONS);
  expect(words).toEqual(words.toSorted((a, b) => a.localeCompare(b)));
});

it("an unknown action is refused with those that it may mean", () => {
  expect(unknownAction("update")).toBe(
    "There is no action update. Did you mean Changed namespace, Changed tenant, Changed tenant limits?",
  );
  expect(unknownAction("changed namespace")).toMatch(/Did you mean Changed namespace\?$/);
  expect(unknownAction("no-such")).toBe("There is no action no-such. Choose one of the list.");
});

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
