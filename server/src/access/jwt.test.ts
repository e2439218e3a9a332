import { describe, expect, test } from "vitest";
import { identityOf } from "./jwt.ts";

const NAMES = { tenant: "tenant", role: "role", namespaces: "namespaces" };
const CALLER = { sub: "worker-7", tenant: "acme" };

describe("the claims of a token", () => {
  test("name a caller of a tenant, with all namespaces", () => {
    const identity = { role: "CALLER", actor: "worker-7", tenantName: "acme", namespaces: undefined };
    expect(identityOf(CALLER, NAMES)).toEqual(identity);
    expect(identityOf({ ...CALLER, role: "CALLER" }, NAMES)).toEqual(identity);
  });

  test("name an administrator, limited to namespaces", () => {
    const claims = { ...CALLER, role: "TENANT_ADMIN", namespaces: ["charges", "mails"] };
    expect(identityOf(claims, NAMES)).toMatchObject({
      role: "TENANT_ADMIN",
      namespaces: new Set(["charges", "mails"]),
    });
  });

  test("name an operator, without a tenant and without limits", () => {
    expect(identityOf({ sub: "root", role: "OPERATOR" }, NAMES)).toEqual({ role: "OPERATOR", actor: "root" });
    expect(identityOf({ ...CALLER, role: "OPERATOR" }, NAMES)).toBeUndefined();
    expect(identityOf({ sub: "root", role: "OPERATOR", namespaces: [] }, NAMES)).toBeUndefined();
  });

  test("with an empty list allow no namespace", () => {
    expect(identityOf({ ...CALLER, namespaces: [] }, NAMES)).toMatchObject({ namespaces: new Set() });
  });

  test.each([
    ["no subject", { sub: undefined }],
    ["an empty subject", { sub: "" }],
    ["a subject with a control character", { sub: "a\u0000b" }],
    ["a subject that is too long", { sub: "x".repeat(256) }],
    ["no tenant", { tenant: undefined }],
    ["a tenant with a malformed name", { tenant: "Acme\u0000" }],
    ["several tenants", { tenant: ["acme"] }],
    ["an unknown role", { role: "ADMIN" }],
    ["a role in lower case", { role: "tenant_admin" }],
    ["several roles", { role: ["CALLER", "TENANT_ADMIN"] }],
    ["namespaces that are not a list", { namespaces: "charges" }],
    ["namespaces that are null", { namespaces: null }],
    ["namespaces that are not strings", { namespaces: [1] }],
  ])("with %s name no identity", (_what, claims) => {
    expect(identityOf({ ...CALLER, ...(claims as object) }, NAMES)).toBeUndefined();
  });
});
