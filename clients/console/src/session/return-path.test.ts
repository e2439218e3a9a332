import { describe, expect, it } from "vitest";
import { returnPathOf, signInPath } from "./return-path.ts";

describe("returnPathOf", () => {
  it("keeps a path of the console, with its query", () => {
    expect(returnPathOf("/console/records?state=ambiguous")).toBe("/records?state=ambiguous");
    expect(returnPathOf("/console/records/charges/a%2Fb")).toBe("/records/charges/a%2Fb");
  });

  it("leads home when the text names another place", () => {
    for (const requested of [
      null,
      "",
      "console/records",
      "//evil.example/console/",
      "//evil.example/console/records",
      "/\\evil.example/console/",
      "\\/evil.example",
      "https://evil.example/console/",
      "javascript:alert(1)",
      "/console/../admin",
      "/console/%2e%2e/admin",
      "/console//evil.example",
      "/console/\\evil.example",
      "/\t/evil.example",
      "/other",
      "/console",
      "/console/api/oidc/start",
      "/console/sign-in?return=/console/",
    ]) {
      expect(returnPathOf(requested), String(requested)).toBe("/");
    }
  });

  it("reads what signInPath wrote", () => {
    const path = "/records/charges/a%2Fb?state=ambiguous&page=x";
    const written = new URLSearchParams(signInPath(path, "SESSION_ENDED").split("?")[1]);
    expect(returnPathOf(written.get("return"))).toBe(path);
    expect(written.get("error")).toBe("SESSION_ENDED");
    expect(signInPath("/", undefined)).toBe("/sign-in");
  });
});
