import { expect, test } from "vitest";
import { ApiKey_Role } from "../../clients/typescript/src/gen/onceward/v1/tenant_pb.ts";
import { connectAdmin, describeAdministration, type TenantAdminClient } from "../support/calls/admin.ts";
import { errorOf } from "../support/calls/errors.ts";
import { RELEASE } from "../support/calls/resolutions.ts";
import { grant, ORDER } from "../support/calls/verbs.ts";
import { createApiKey } from "../support/servers/tenants.ts";

type Requests = {
  readonly [Rpc in keyof TenantAdminClient]?: readonly Parameters<TenantAdminClient[Rpc]>[0][];
};

const OWN = { namespace: ORDER.namespace };
const MAILS = { namespace: "mails" };
const RELEASE_ALL = { reason: "found out", resolution: RELEASE, validateOnly: true };

/** Requests about the whole tenant, and about another namespace. */
const REFUSED: Requests = {
  getTenant: [{}],
  updateTenant: [{}],
  listNamespaces: [{}],
  getNamespace: [{ name: "mails" }],
  updateNamespace: [{ namespace: { name: "mails" }, allowMissing: true }],
  deleteNamespace: [{ name: "mails" }],
  listUndeclaredNamespaces: [{}],
  listRecords: [{}, MAILS],
  countRecords: [MAILS],
  countAmbiguousRecords: [{}, MAILS],
  getRecord: [{ ...ORDER, ...MAILS }],
  getKeyHistory: [{ ...ORDER, ...MAILS }],
  resolveRecord: [{ ...ORDER, ...MAILS, reason: "found out", resolution: RELEASE }],
  resolveAmbiguousRecords: [RELEASE_ALL, { ...RELEASE_ALL, ...MAILS }],
  listRecordJobs: [{}],
  createApiKey: [{ apiKey: { role: ApiKey_Role.CALLER, namespaces: [ORDER.namespace] } }],
  listApiKeys: [{}],
  revokeApiKey: [{ id: "0123456789abcdef" }],
  listAuditEvents: [{}],
  getUsage: [{}, MAILS],
  getUsageNow: [{}, MAILS],
  getRetentionAdvice: [MAILS],
  listRetentionAdvice: [{ namespaces: [ORDER.namespace, "mails"] }],
  getKeyQuality: [{}, MAILS],
};
const ANSWERED: Requests = {
  listRecords: [OWN],
  countRecords: [OWN],
  countAmbiguousRecords: [OWN],
  getRecord: [ORDER],
  getKeyHistory: [ORDER],
  resolveRecord: [{ ...ORDER, reason: "found out", resolution: RELEASE }],
  resolveAmbiguousRecords: [{ ...RELEASE_ALL, ...OWN }],
  getUsage: [OWN],
  getUsageNow: [OWN],
  getRetentionAdvice: [OWN],
  listRetentionAdvice: [{ namespaces: [ORDER.namespace] }],
  getKeyQuality: [OWN],
};

describeAdministration("An administrator of one namespace", (world, transport) => {
  async function callsOf([rpc, requests = []]: [string, Requests[keyof Requests]]) {
    const { caller, tenant } = await world().administeredTenant();
    await grant(caller);
    const key = { tenantId: tenant.id, role: "TENANT_ADMIN", namespaces: [ORDER.namespace] } as const;
    const limited = connectAdmin(world().server, await createApiKey(world().database, key), transport);
    const call = limited[rpc as keyof TenantAdminClient] as (request: unknown) => Promise<unknown>;
    return requests.map((request) => ({ request, answer: () => call(request) }));
  }

  test.each(Object.entries(REFUSED))("is refused %s of the tenant and of other namespaces", async (...of) => {
    for (const { request, answer } of await callsOf(of)) {
      const metadata = JSON.stringify(request).includes("mails") ? MAILS : {};
      expect(await errorOf(answer())).toMatchObject({ reason: "NAMESPACE_DENIED", metadata });
    }
  });

  test.each(Object.entries(ANSWERED))("may call %s about its own", async (...of) => {
    for (const { answer } of await callsOf(of)) await answer();
  });
});
