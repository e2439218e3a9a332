import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { AuditEvent_Outcome } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { expect, it } from "vitest";
import { commandOf, FILTERS, type Filters, requestOf } from "./filters.ts";

const NONE = Object.fromEntries(FILTERS.map((name) => [name, ""])) as Filters;

it("every filter of the address is in the request and in the command of the role", () => {
  const after = "2026-11-23T18:00:00.000Z";
  const filters = {
    ...NONE,
    tenant: "acme",
    target: "namespace a",
    outcome: "denied",
    signins: "shown",
    after,
  };
  expect(requestOf(filters)).toEqual({
    ...{ tenant: "acme", actor: "", action: "", target: "namespace a", outcome: AuditEvent_Outcome.DENIED },
    withoutSignIns: false,
    after: timestampFromDate(new Date(after)),
  });
  expect(commandOf(filters, "OPERATOR")).toBe(
    `onceward operator audit --tenant acme --target 'namespace a' --outcome denied --after ${after}`,
  );
  expect(commandOf(filters, "TENANT_ADMIN")).toBe(
    `onceward audit list --target 'namespace a' --outcome denied --after ${after}`,
  );
});

it("an unknown outcome filters nothing", () => {
  expect(requestOf({ ...NONE, outcome: "lost" }).outcome).toBe(AuditEvent_Outcome.UNSPECIFIED);
});

it("sign-ins are left out, unless an action is chosen", () => {
  expect(requestOf(NONE).withoutSignIns).toBe(true);
  expect(commandOf(NONE, "TENANT_ADMIN")).toBe("onceward audit list --without-sign-ins");
  expect(requestOf({ ...NONE, action: "SignIn" }).withoutSignIns).toBe(false);
});
