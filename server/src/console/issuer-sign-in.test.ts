import { expect, test } from "vitest";
import { returnPath } from "./issuer-sign-in.ts";

test.each([
  "/console/",
  "/console/records/charges/order-1?state=COMPLETED&token=a%2Fb#attempts",
  "/console/namespaces/a%20b",
])("%s is a page of the console", (path) => {
  expect(returnPath(path)).toBe(path);
});

test.each([
  undefined,
  null,
  "",
  "console/",
  "/",
  "/consoles/",
  "//evil.example/console/",
  "/\\evil.example",
  "\\\\evil.example/console/",
  "https://evil.example/console/",
  "javascript:alert(1)//console/",
  "/console/..//evil.example",
  "/console/../../evil",
  "/console/%2e%2e/%2e%2e//evil.example",
  "/console/.%2e\\..\\\\evil.example",
  "/\t/evil.example/console/",
  " /console/",
  "/console\\..\\..\\evil",
  "/console/api/oidc/start",
  "/console/./api/session",
  "/console/x/../api/session",
  `/console/${"x".repeat(2000)}`,
])("%j leads home instead", (path) => {
  expect(returnPath(path)).toBe("/console/");
});

test("what a browser makes of a path that is kept stays on the console", () => {
  for (const path of ["/console//evil.example", "/console/%2f%2fevil.example", "/console/\\evil.example"]) {
    const url = new URL(returnPath(path), "https://onceward.example");
    expect([url.origin, url.pathname.startsWith("/console/")]).toEqual(["https://onceward.example", true]);
  }
});
