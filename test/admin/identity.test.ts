import { timestampMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { WhoAmIResponse_Kind } from "../../clients/typescript/src/gen/onceward/v1/identity_pb.ts";
import { ApiKey_Role } from "../../clients/typescript/src/gen/onceward/v1/tenant_pb.ts";
import { parseApiKey } from "../../server/src/access/api-key.ts";
import { connectIdentity, describeAdministrationOverAll } from "../support/calls/admin.ts";
import { errorOf } from "../support/calls/errors.ts";
import { createApiKey } from "../support/servers/tenants.ts";

describeAdministrationOverAll("WhoAmI", (world, transport) => {
  const whoIs = (apiKey: string) => connectIdentity(world().server, apiKey, transport).whoAmI({});

  test.each([
    ["CALLER", ApiKey_Role.CALLER],
    ["TENANT_ADMIN", ApiKey_Role.TENANT_ADMIN],
  ] as const)("tells a %s its tenant, role and namespaces", async (role, expected) => {
    const { tenant } = await world().administeredTenant();
    const key = { tenantId: tenant.id, role, namespaces: ["refunds", "charges"] };
    const apiKey = await createApiKey(world().database, key);
    expect(await whoIs(apiKey)).toMatchObject({
      kind: WhoAmIResponse_Kind.API_KEY,
      actor: parseApiKey(apiKey)?.id,
      role: expected,
      tenant: tenant.name,
      namespaces: ["charges", "refunds"],
    });
  });

  test("tells an operator that it has no tenant", async () => {
    const apiKey = await createApiKey(world().database, { role: "OPERATOR" });
    const { role, tenant, namespaces, expiresAt } = await whoIs(apiKey);
    expect({ role, tenant, namespaces, expiresAt }).toEqual({
      role: ApiKey_Role.OPERATOR,
      tenant: "",
      namespaces: [],
      expiresAt: undefined,
    });
  });

  test("tells when an API key expires", async () => {
    const { tenant } = await world().administeredTenant();
    const apiKey = await createApiKey(world().database, { tenantId: tenant.id, role: "CALLER" });
    const [row] = await world().database.query<{ ms: number }>(
      `update api_keys set expires_at = now() + interval '1 hour' where id = $1
       returning date_part('epoch', expires_at) * 1000 as ms`,
      [parseApiKey(apiKey)?.id],
    );
    const { expiresAt } = await whoIs(apiKey);
    expect(expiresAt && timestampMs(expiresAt)).toBeCloseTo(row?.ms ?? Number.NaN, -1);
  });

  test("refuses a credential that is not valid", async () => {
    expect(await errorOf(whoIs("ow_0123456789abcdef_unknown"))).toMatchObject({
      reason: "CREDENTIAL_INVALID",
    });
  });
});
