import { describe, expect, test } from "vitest";
import { Refusal } from "../domain/refusal.ts";
import { Violations } from "../domain/violations.ts";
import { createPageTokens, pageSize, type Scope } from "./pages.ts";

const tokens = tokensOf();
const SCOPE: Scope = [7, "ListRecords", "charges", undefined];
const CURSOR = ["charges", "order-1\u20ac"];

function tokensOf(secret = "a secret", installationId = "here") {
  return createPageTokens(secret, () => installationId);
}

function fieldsRefused(scope: Scope, token: string): readonly string[] {
  const violations = new Violations();
  tokens.read(scope, token, violations);
  try {
    violations.throwIfAny();
    return [];
  } catch (error) {
    return error instanceof Refusal ? error.violations.map(({ field }) => field) : [];
  }
}

describe("a page token", () => {
  test("returns its cursor on every replica", () => {
    const token = tokens.write(SCOPE, CURSOR);
    expect(tokensOf().read(SCOPE, token, new Violations())).toEqual(CURSOR);
  });

  test("that is empty is the first page", () => {
    expect(tokens.read(SCOPE, "", new Violations())).toBeUndefined();
  });

  test.each([
    ["of another tenant", [8, "ListRecords", "charges", undefined]],
    ["of another list", [7, "ListNamespaces", "charges", undefined]],
    ["with another filter", [7, "ListRecords", "refunds", undefined]],
    ["whose filters are joined otherwise", [7, "ListRecords", 'charges",null', undefined]],
  ] as const)("is refused in a request %s", (_, scope) => {
    expect(fieldsRefused(scope, tokens.write(SCOPE, CURSOR))).toEqual(["page_token"]);
  });

  test("that was altered, truncated or invented is refused", () => {
    const token = tokens.write(SCOPE, CURSOR);
    const altered = `${token.slice(0, -2)}${token.endsWith("AA") ? "BB" : "AA"}`;
    for (const forged of [altered, token.slice(0, 20), "x", Buffer.from("[]").toString("base64url")]) {
      expect(fieldsRefused(SCOPE, forged)).toEqual(["page_token"]);
    }
    expect(fieldsRefused(SCOPE, tokensOf("another secret").write(SCOPE, CURSOR))).toHaveLength(1);
  });

  test("from before the installation was renewed is refused", () => {
    const before = tokensOf("a secret", "before").write(SCOPE, CURSOR);
    expect(fieldsRefused(SCOPE, before)).toEqual(["page_token"]);
  });
});

test("a page's size is at most 1,000, and 50 if unset", () => {
  const violations = new Violations();
  expect([0, 1, 1000, 5000].map((asked) => pageSize(asked, violations))).toEqual([50, 1, 1000, 1000]);
  violations.throwIfAny();
  pageSize(-1, violations);
  expect(() => violations.throwIfAny()).toThrow("page_size must not be negative");
});
