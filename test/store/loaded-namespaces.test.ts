import { expect, test } from "vitest";
import type { Statement } from "../../server/src/database/pool.ts";
import { createFindTenants } from "../../server/src/database/tenants/tenants.ts";
import type { Deadline } from "../../server/src/domain/operation.ts";
import { policyFor, type Tenant } from "../../server/src/domain/tenant.ts";
import { openStorePool } from "../support/database/connections.ts";
import { createDatabaseOfTest } from "../support/database/database.ts";
import { createTenant, type PolicyColumns, setNamespacePolicy } from "../support/servers/tenants.ts";

const WHENEVER: Deadline = { atMs: Number.POSITIVE_INFINITY, cancelled: false };

/** A tenant, a function that reads it, and the namespaces that each statement loaded. */
async function setUp(policy: PolicyColumns = {}) {
  const database = await createDatabaseOfTest();
  const tenant = await createTenant(database, policy);
  const pool = openStorePool(database);
  const loads: number[] = [];
  const find = createFindTenants({
    ...pool,
    run(statement: Statement, parameters, operations = 1) {
      if (statement.name === "read_namespace_policies") loads.push(operations);
      return pool.run(statement, parameters, operations);
    },
  });
  const read = async (): Promise<Tenant> => {
    const found = (await find([tenant.id])).get(tenant.id);
    if (found === undefined) throw new Error("there is no tenant");
    return found;
  };
  const declare = (name: string, columns: PolicyColumns) =>
    setNamespacePolicy(database, tenant, name, columns);
  return { database, tenant, read, declare, loads };
}

/** Returns `count` names. */
function names(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${prefix}-${i}`);
}

test("a tenant that never declared a namespace has nothing to load", async () => {
  const { read, loads } = await setUp({ max_lease_ms: 1000 });
  const tenant = await read();
  expect(tenant.namespaces.isLoaded("charges")).toBe(true);
  expect(policyFor(tenant, "charges").maxLeaseMs).toBe(1000);
  expect(loads).toEqual([]);
});

test("only requested policies are loaded, and kept while the tenant changes none", async () => {
  const { database, tenant, read, declare, loads } = await setUp({ max_lease_ms: 1000 });
  await database.query(
    "insert into namespaces (tenant_id, name) select $1, 'other-' || n from generate_series(1, 5000) n",
    [tenant.id],
  );
  await declare("charges", { max_lease_ms: 2000 });
  const first = await read();
  expect(() => policyFor(first, "charges")).toThrow("not loaded");
  await first.namespaces.load(["charges", "never-declared"], WHENEVER);
  await database.query("update tenants set max_lease_ms = 3000, default_lease_ms = 500");
  const second = await read();
  expect(policyFor(second, "charges")).toMatchObject({ maxLeaseMs: 2000, defaultLeaseMs: 500 });
  expect(policyFor(second, "never-declared")).toMatchObject({ maxLeaseMs: 3000, defaultLeaseMs: 500 });
  expect(policyFor(first, "charges")).toMatchObject({ maxLeaseMs: 2000, defaultLeaseMs: 2000 });
  expect(loads).toEqual([2]);
});

test.each([
  ["changed", "update namespaces set max_lease_ms = 9000", 9000],
  ["deleted", "delete from namespaces where name = 'charges'", 1000],
])(
  "a policy that is %s holds once the tenant is read again, for a namespace in use",
  async (_, change, becomesMs) => {
    const { database, read, declare } = await setUp({ max_lease_ms: 1000 });
    await declare("charges", { max_lease_ms: 2000 });
    const before = await read();
    await before.namespaces.load(["charges"], WHENEVER);
    await database.query(change);
    expect(policyFor(before, "charges").maxLeaseMs).toBe(2000);
    expect(policyFor(await read(), "charges").maxLeaseMs).toBe(becomesMs);
  },
);

test("policies from before a restore are dropped, even if their version is reused", async () => {
  const { database, tenant, read, declare } = await setUp();
  await declare("charges", { max_lease_ms: 2000 });
  const before = await read();
  await before.namespaces.load(["charges"], WHENEVER);
  const [was] = await database.query("select namespaces_version as version from tenants where id = $1", [
    tenant.id,
  ]);
  await database.query("update namespaces set max_lease_ms = 9000");
  await database.query("update tenants set namespaces_version = $1", [was?.version]);
  await database.query("update installation set id = gen_random_uuid()");
  const after = await read();
  expect(after.namespaces.isLoaded("charges")).toBe(false);
  await after.namespaces.load(["charges"], WHENEVER);
  expect(policyFor(after, "charges").maxLeaseMs).toBe(9000);
});

test("the number of loaded policies is limited, and the most recently used ones are kept", async () => {
  const { read, declare } = await setUp();
  await declare("charges", { max_lease_ms: 2000 });
  const { namespaces } = await read();
  await namespaces.load(["charges"], WHENEVER);
  for (const prefix of ["a", "b", "c"]) {
    await namespaces.load(names(prefix, 1000), WHENEVER);
    expect(names(prefix, 1000).every(namespaces.isLoaded, namespaces)).toBe(true);
    expect(namespaces.isLoaded("charges")).toBe(true);
  }
  expect(names("a", 1000).some(namespaces.isLoaded, namespaces)).toBe(false);
});

test("an error of a load reaches its caller, and the next load succeeds", async () => {
  const { database, read, declare } = await setUp();
  await declare("charges", { max_lease_ms: 2000 });
  const tenant = await read();
  await database.query("alter table namespaces rename to elsewhere");
  await expect(tenant.namespaces.load(["charges"], WHENEVER)).rejects.toThrow();
  expect(tenant.namespaces.isLoaded("charges")).toBe(false);
  await database.query("alter table elsewhere rename to namespaces");
  await tenant.namespaces.load(["charges"], WHENEVER);
  expect(policyFor(tenant, "charges").maxLeaseMs).toBe(2000);
});

test("while loading fails, a changed policy is unknown; then the new one holds", async () => {
  const { database, read, declare, loads } = await setUp();
  await declare("charges", { max_lease_ms: 2000 });
  const before = await read();
  await before.namespaces.load(["charges"], WHENEVER);
  await database.query("update namespaces set max_lease_ms = 9000");
  await database.query("alter table namespaces rename to elsewhere");
  const loaded = loads.length;
  const failures = 10;
  for (let failed = 0; failed < failures; failed++) {
    const tenant = await read();
    expect(tenant.namespaces.isLoaded("charges")).toBe(false);
    expect(() => policyFor(tenant, "charges")).toThrow("not loaded");
    await expect(tenant.namespaces.load(["charges"], WHENEVER)).rejects.toThrow();
  }
  // One for each call, and one for the tenant whose namespaces changed: a failure leaves nothing to be loaded
  // later.
  expect(loads.slice(loaded)).toEqual(Array(failures + 1).fill(1));
  await database.query("alter table elsewhere rename to namespaces");
  const tenant = await read();
  await tenant.namespaces.load(["charges"], WHENEVER);
  expect(policyFor(await read(), "charges").maxLeaseMs).toBe(9000);
  expect(loads.length).toBe(loaded + failures + 2);
});
