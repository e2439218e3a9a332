import { parseApiKey } from "../src/access/api-key.ts";
import { storedSecret } from "../src/access/pepper.ts";
import { insertApiKey } from "../src/admin/keys/create-api-key.ts";
import { lockApiKey } from "../src/admin/keys/revoke-api-key.ts";
import type { Config } from "../src/config/config.ts";
import { openPool } from "../src/database/pool.ts";
import { findApiKeys, storeKeyDigest } from "../src/database/tenants/api-keys.ts";
import { ensureTenant, lockTenant } from "../src/database/tenants/tenants.ts";
import type { Role } from "../src/domain/tenant.ts";
import { DEMO_TENANT } from "./banner.ts";
import { DATA_DIR, type DevSecrets } from "./secrets.ts";

/**
 * Creates the demo tenant and the keys of `npm start` where they are missing. Concurrent starts create them once: the first
 * locks the tenant.
 *
 * @throws Error if a key of `secrets` is malformed.
 */
export async function ensureDemoTenant(
  config: Pick<Config, "DATABASE_URL" | "ONCEWARD_API_KEY_PEPPER" | "ONCEWARD_PGBOUNCER">,
  secrets: DevSecrets,
): Promise<void> {
  const pool = openPool({
    databaseUrl: config.DATABASE_URL,
    size: 1,
    throughPgBouncer: config.ONCEWARD_PGBOUNCER,
  });
  try {
    const demoId = await ensureTenant(pool, DEMO_TENANT);
    const keys: readonly (readonly [Role, number | undefined, string])[] = [
      ["CALLER", demoId, secrets.callerKey],
      ["TENANT_ADMIN", demoId, secrets.adminKey],
      ["OPERATOR", undefined, secrets.operatorKey],
    ];
    await pool.transaction(async (transaction) => {
      await lockTenant(transaction, demoId);
      for (const [role, tenantId, text] of keys) {
        const key = parseApiKey(text);
        if (key === undefined) throw new Error(`${DATA_DIR} contains a malformed key; remove the folder`);
        const stored = storedSecret(key.secret, config.ONCEWARD_API_KEY_PEPPER);
        const known = (await findApiKeys(transaction, [key.id])).get(key.id);
        // The pepper may have changed. A key that was revoked stays so.
        if (known !== undefined) await storeKeyDigest(transaction, key.id, known.digest, stored);
        else if ((await lockApiKey(transaction, tenantId, key.id)) === undefined) {
          const terms = { id: key.id, role, namespaces: undefined, label: "demo", expiresAtMs: undefined };
          await insertApiKey(transaction, tenantId, terms, stored);
        }
      }
    });
  } finally {
    await pool.close();
  }
}
