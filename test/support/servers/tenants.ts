import { randomBytes } from "node:crypto";
import {
  type ApiKey,
  digestSecret,
  formatApiKey,
  generateApiKey,
  parseApiKey,
} from "../../../server/src/access/api-key.ts";
import type { Role } from "../../../server/src/domain/tenant.ts";
import type { OpenDatabase } from "../database/database.ts";
import { TEST_PEPPER } from "./server.ts";

/** The tenant of one test, so that no test sees another's records. */
export interface TestTenant {
  readonly id: number;
  readonly name: string;
  /** A key with the role CALLER. */
  readonly apiKey: string;
}

/** Columns of `tenants` and `namespaces`, such as `{ key_retention_s: 60 }`. */
export type PolicyColumns = Readonly<Record<string, string | number | boolean>>;

/** Creates a tenant with a policy and a caller's key. */
export async function createTenant(database: OpenDatabase, policy: PolicyColumns = {}): Promise<TestTenant> {
  const name = `t-${randomBytes(6).toString("hex")}`;
  const columns = Object.keys(policy);
  const placeholders = columns.map((_, index) => `$${index + 2}`);
  const [row] = await database.query<{ id: number }>(
    `insert into tenants (${["name", ...columns].join(", ")}) values (${["$1", ...placeholders].join(", ")}) returning id`,
    [name, ...Object.values(policy)],
  );
  if (row === undefined) throw new Error("no tenant was made");
  return { id: row.id, name, apiKey: await createApiKey(database, { tenantId: row.id, role: "CALLER" }) };
}

/** Declares a namespace of a tenant with a policy. */
export async function setNamespacePolicy(
  database: OpenDatabase,
  tenant: TestTenant,
  namespace: string,
  policy: PolicyColumns,
): Promise<void> {
  const columns = Object.keys(policy);
  const placeholders = columns.map((_, index) => `$${index + 3}`);
  await database.query(
    `insert into namespaces (${["tenant_id", "name", ...columns].join(", ")})
     values (${["$1", "$2", ...placeholders].join(", ")})`,
    [tenant.id, namespace, ...Object.values(policy)],
  );
}

/** Creates an API key. */
export async function createApiKey(
  database: OpenDatabase,
  key: { readonly tenantId?: number; readonly role: Role; readonly namespaces?: readonly string[] },
): Promise<string> {
  const made = generateApiKey();
  await database.query(
    "insert into api_keys (id, tenant_id, role, digest, namespaces) values ($1, $2, $3, $4, $5)",
    [made.id, key.tenantId ?? null, key.role, digestSecret(made.secret, TEST_PEPPER), key.namespaces ?? null],
  );
  return formatApiKey(made);
}

/**
 * Returns the id and the secret of an API key. A secret may contain the character that separates them.
 *
 * @throws Error if the text is not an API key.
 */
export function partsOf(apiKey: string): ApiKey {
  const parts = parseApiKey(apiKey);
  if (parts === undefined) throw new Error("the text is not an API key");
  return parts;
}
