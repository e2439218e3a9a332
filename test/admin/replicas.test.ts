import { randomUUID } from "node:crypto";
import { describe, expect, onTestFinished, test } from "vitest";
import { ApiKey_Role } from "../../clients/typescript/src/gen/onceward/v1/tenant_pb.ts";
import { connectAdmin, connectOperator } from "../support/calls/admin.ts";
import { connectClient } from "../support/calls/clients.ts";
import { describeError } from "../support/calls/errors.ts";
import { ageRecords } from "../support/calls/records.ts";
import { complete, ORDER, seconds } from "../support/calls/verbs.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { hasRedis, startRedis } from "../support/redis/redis.ts";
import { repeatOften } from "../support/servers/fast-path.ts";
import { startTestServer, type TestServer } from "../support/servers/server.ts";
import { createApiKey, createTenant } from "../support/servers/tenants.ts";

/** The contract's bound. Changes are waited for as long as it takes, and together, so that the bound passes once. */
const EVERYWHERE = { timeout: 10_000, interval: 50 };

const HOUR_S = 3600;

describe("Within 10 s, a change through one replica is effective on the other", () => {
  const database = useDatabase();

  async function startReplicas(env: Readonly<Record<string, string>>): Promise<[TestServer, TestServer]> {
    const start = () => startTestServer(database.url, { ONCEWARD_CACHE_MIB: "16", ...env });
    const replicas: [TestServer, TestServer] = [await start(), await start()];
    onTestFinished(async () => {
      for (const replica of replicas) await replica.stop();
    });
    return replicas;
  }

  /** A tenant whose calls and completed record the other replica has just answered, so that it knows them by heart. */
  async function knownTenant([here, there]: readonly [TestServer, TestServer]) {
    const tenant = await createTenant(database);
    const adminKey = await createApiKey(database, { tenantId: tenant.id, role: "TENANT_ADMIN" });
    const elsewhere = connectClient(there, tenant.apiKey);
    await complete(elsewhere);
    expect((await elsewhere.claim(ORDER)).outcome.case).toBe("completed");
    return { tenant, elsewhere, admin: connectAdmin(here, adminKey) };
  }

  test("a record, a key, a tenant, its retention, its quotas", { timeout: 30_000 }, async () => {
    const replicas = await startReplicas({});
    const [here] = replicas;
    const operator = connectOperator(here, await createApiKey(database, { role: "OPERATOR" }));
    const forgotten = await knownTenant(replicas);
    const revoked = await knownTenant(replicas);
    const suspended = await knownTenant(replicas);
    const deleted = await knownTenant(replicas);
    const shortened = await knownTenant(replicas);
    const limited = await knownTenant(replicas);

    const { secret, apiKey } = await revoked.admin.createApiKey({ apiKey: { role: ApiKey_Role.CALLER } });
    const revokedCaller = connectClient(replicas[1], secret);
    expect((await revokedCaller.claim(ORDER)).outcome.case).toBe("completed");

    await forgotten.admin.resolveRecord({
      ...ORDER,
      reason: "wrong",
      resolution: { case: "forget", value: {} },
    });
    await revoked.admin.revokeApiKey({ id: apiKey?.id ?? "" });
    await operator.suspendTenant({ name: suspended.tenant.name });
    await operator.deleteTenant({ name: deleted.tenant.name });
    await operator.updateTenantLimits({
      name: limited.tenant.name,
      quotas: { operationsPerSecond: 1, burst: 1 },
    });
    // Its copies are of before it became this old.
    await ageRecords(database, shortened.tenant, 2 * HOUR_S);
    await shortened.admin.updateTenant({
      tenant: { policy: { keyRetention: seconds(HOUR_S), resultRetention: seconds(HOUR_S) } },
      applyToExisting: true,
    });
    // Re-stamping waits until all replicas have the policy, which is longer than they need.
    await database.query("update record_jobs set starts_at = now() where tenant_id = $1", [
      shortened.tenant.id,
    ]);

    const claimOf = async ({ elsewhere }: typeof forgotten) => (await elsewhere.claim(ORDER)).outcome.case;
    const refused = (call: () => Promise<unknown>, reason: unknown) =>
      expect
        .poll(
          async () =>
            call().then(
              () => "served",
              (error) => describeError(error).reason,
            ),
          EVERYWHERE,
        )
        .toEqual(reason);
    const retentionOfClaim = async () => {
      const { expiresAt } = await shortened.elsewhere.claim({ ...ORDER, key: randomUUID() });
      return Number(expiresAt?.seconds ?? 0n) - Date.now() / 1000;
    };
    await Promise.all([
      expect.poll(() => claimOf(shortened), EVERYWHERE).toBe("claimed"),
      expect.poll(retentionOfClaim, EVERYWHERE).toBeLessThan(2 * HOUR_S),
      refused(() => limited.elsewhere.lookup(ORDER), "QUOTA_RATE"),
      expect.poll(() => claimOf(forgotten), EVERYWHERE).toBe("claimed"),
      refused(() => revokedCaller.lookup(ORDER), "CREDENTIAL_INVALID"),
      refused(() => suspended.elsewhere.claim(ORDER), "TENANT_SUSPENDED"),
      refused(() => deleted.elsewhere.claim(ORDER), expect.not.stringMatching("served")),
    ]);
    // No other replica's row was deleted with it.
    expect(await claimOf(revoked)).toBe("completed");
  });

  test.runIf(hasRedis())("a forgotten record of which Redis keeps a copy", { timeout: 30_000 }, async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const replicas = await startReplicas({ REDIS_URL: redis.url });
    const { admin, elsewhere } = await knownTenant(replicas);
    await repeatOften(elsewhere);
    await admin.resolveRecord({ ...ORDER, reason: "wrong", resolution: { case: "forget", value: {} } });
    const claim = async () => (await elsewhere.claim(ORDER)).outcome.case;
    await expect.poll(claim, EVERYWHERE).toBe("claimed");
  });
});
