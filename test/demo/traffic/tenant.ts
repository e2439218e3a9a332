import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ApiKey_Role, createTenantAdmin, type Operator, Policy_OnLeaseExpiry } from "@onceward/client/admin";
import { findTenantIds } from "../../../server/src/store/tenants/tenants.ts";
import { type DevServer, NoDevServer } from "./dev-server.ts";
import { NAMESPACES, type TrafficNamespace } from "./namespaces.ts";

const PREFIX = "traffic-";
const REASON = "npm run demo:traffic";

/** A tenant that only this run uses. */
export interface TrafficTenant {
  readonly id: number;
  readonly name: string;
  readonly callerKey: string;
  /** The file with the key of the tenant's administrator. */
  readonly adminKeyFile: string;
}

/**
 * Creates the run's tenant with its namespaces, after it deleted those of earlier runs. A new one each time:
 * what another run planted would falsify what is planted now.
 *
 * @throws NoDevServer if the server has another database.
 */
export async function createTrafficTenant(dev: DevServer): Promise<TrafficTenant> {
  const { operator, address, dataDir } = dev;
  await deleteEarlier(operator);
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
  await declareNamespaces(address, adminKey);
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
