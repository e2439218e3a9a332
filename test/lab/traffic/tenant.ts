import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ApiKey_Role, createTenantAdmin, type Operator, Policy_OnLeaseExpiry } from "@onceward/client/admin";
import { findTenantIds } from "../../../server/src/database/tenants/tenants.ts";
import { type DevServer, NoDevServer } from "./dev-server.ts";
import { NAMESPACE_NAMES, NAMESPACES, type TrafficNamespace } from "./namespaces.ts";

const PREFIX = "traffic-";
const REASON = "npm run lab -- traffic";

/** The tenant that gets the traffic. */
export interface TrafficTenant {
  readonly id: number;
  readonly name: string;
  readonly callerKey: string;
  /** The file with the key of the tenant's administrator. */
  readonly adminKeyFile: string;
}

/** Finds a tenant in which nothing was ever claimed or declared in these namespaces. */
const findUnusedTenant = {
  name: "find_unused_tenant",
  text: `
select t.id
  from tenants t
 where t.name = $1::text
   and not exists (select from records r where r.tenant_id = t.id and r.namespace = any($2::text[]))
   and not exists (select from insight_hours h where h.tenant_id = t.id and h.namespace = any($2::text[]))
   and not exists (select from namespaces n where n.tenant_id = t.id and n.name = any($2::text[]))`,
};

/**
 * Returns the tenant of the run, with its namespaces: the demo tenant while these are unused there, so that the keys that
 * `npm start` printed show the traffic; otherwise a tenant of its own, because what was claimed before would falsify what is
 * planted. Deletes the tenants of earlier runs.
 *
 * @throws NoDevServer if the server has another database.
 */
export async function prepareTrafficTenant(dev: DevServer): Promise<TrafficTenant> {
  await deleteEarlier(dev.operator);
  const tenant = (await findUnusedDemo(dev)) ?? (await createTrafficTenant(dev));
  await declareNamespaces(dev.address, (await readFile(tenant.adminKeyFile, "utf8")).trim());
  return tenant;
}

async function findUnusedDemo({ pool, demo }: DevServer): Promise<TrafficTenant | undefined> {
  if (demo === undefined) return undefined;
  const [unused] = await pool.run<{ id: number }>(findUnusedTenant, [demo.name, NAMESPACE_NAMES]);
  return unused && { ...demo, id: unused.id };
}

async function createTrafficTenant(dev: DevServer): Promise<TrafficTenant> {
  const { operator, address, dataDir } = dev;
  const name = `${PREFIX}${randomBytes(3).toString("hex")}`;
  await operator.createTenant({ tenant: { name } });
  const id = (await findTenantIds(dev.pool, [name])).get(name);
  if (id === undefined) {
    await operator.deleteTenant({ name, reason: REASON });
    throw new NoDevServer(`the server at ${address} has another database than ${dataDir}/postgres`);
  }
  const callerKey = await createKey(operator, name, ApiKey_Role.CALLER);
  const adminKey = await createKey(operator, name, ApiKey_Role.TENANT_ADMIN);
  const adminKeyFile = join(dataDir, "traffic-admin.key");
  await writeFile(adminKeyFile, `${adminKey}\n`, { mode: 0o600 });
  return { id, name, callerKey, adminKeyFile };
}

async function deleteEarlier(operator: Operator): Promise<void> {
  for (let pageToken = ""; ; ) {
    const { tenants, nextPageToken } = await operator.listTenants({ pageToken });
    for (const { name } of tenants.filter((tenant) => tenant.name.startsWith(PREFIX)))
      await operator.deleteTenant({ name, reason: REASON });
    if (nextPageToken === "") return;
    pageToken = nextPageToken;
  }
}

async function createKey(operator: Operator, tenant: string, role: ApiKey_Role): Promise<string> {
  const { secret } = await operator.createTenantApiKey({ tenant, apiKey: { role, label: REASON } });
  return secret;
}

async function declareNamespaces(address: string, apiKey: string): Promise<void> {
  const admin = createTenantAdmin({ address, apiKey });
  try {
    for (const { name, policy } of NAMESPACES as readonly TrafficNamespace[]) {
      if (policy === undefined) continue;
      await admin.updateNamespace({
        namespace: {
          name,
          policy: {
            keyRetention: { seconds: BigInt(policy.keyRetentionS) },
            onLeaseExpiry: Policy_OnLeaseExpiry[policy.onLeaseExpiry],
          },
        },
        updateMask: { paths: ["policy.key_retention", "policy.on_lease_expiry"] },
        allowMissing: true,
      });
    }
  } finally {
    admin.close();
  }
}
