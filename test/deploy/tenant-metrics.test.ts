import { beforeEach, expect, onTestFinished, test } from "vitest";
import { connectClient, type IdempotencyClient } from "../support/calls/clients.ts";
import { complete, grant, ORDER } from "../support/calls/verbs.ts";
import { awaitYoungHour } from "../support/database/time.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { describeWithPrograms } from "../support/deploy/programs.ts";
import { startPrometheus } from "../support/deploy/prometheus.ts";
import { type ServerProcess, startServerProcess } from "../support/servers/server-process.ts";
import { createApiKey, createTenant, type TestTenant } from "../support/servers/tenants.ts";

const database = useDatabase();
let replicas: readonly [ServerProcess, ServerProcess];
let tenant: TestTenant;
let adminKey: string;
let clients: readonly [IdempotencyClient, IdempotencyClient];
const CLAIMS = `onceward_usage_claims_total{namespace="${ORDER.namespace}"}`;

beforeEach(async () => {
  await awaitYoungHour();
  const newReplica = () => startServerProcess(database.url, { ONCEWARD_USAGE_FLUSH: "100ms" });
  replicas = await Promise.all([newReplica(), newReplica()]);
  for (const replica of replicas) onTestFinished(() => replica.end());
  tenant = await createTenant(database, { quota_live_records: 9 });
  adminKey = await newKey(tenant);
  clients = [connectClient(replicas[0], tenant.apiKey), connectClient(replicas[1], tenant.apiKey)];
  await complete(clients[0]);
  for (const client of clients) await client.claim(ORDER);
});

function newKey(of: TestTenant, namespaces: readonly string[] = []): Promise<string> {
  const limit = namespaces.length > 0 && { namespaces };
  return createApiKey(database, { tenantId: of.id, role: "TENANT_ADMIN", ...limit });
}

async function scrape(apiKey: string, method = "GET"): Promise<readonly [status: number, text: string]> {
  const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/proto" };
  const response = await fetch(`http://127.0.0.1:${replicas[0].httpPort}/metrics`, { method, headers });
  return [response.status, await response.text()];
}

test("an admin key reads its tenant's counters of all replicas, by namespace, and its quotas", async () => {
  await expect.poll(async () => (await scrape(adminKey))[1]).toContain(`\n${CLAIMS} 3\n`);
  const [, text] = await scrape(adminKey);
  expect(text).toContain(`\n${CLAIMS.replace("claims", "replayed")} 2\n`);
  expect(text).toContain("\nonceward_quota_live_records 9\n");
  expect(text).toMatch(/\nonceward_live_records \d\n[\s\S]*# EOF\n$/);

  const [, own] = await scrape(await newKey(tenant, [ORDER.namespace]));
  expect(own).toContain(`\n${CLAIMS} 3\n`);
  const others = [await newKey(tenant, ["another"]), await newKey(await createTenant(database))];
  for (const key of others) expect((await scrape(key))[1]).not.toMatch(/namespace=|quota_/);
  expect(await scrape(tenant.apiKey)).toEqual([403, expect.stringContaining("ROLE_DENIED")]);
  expect(await scrape(adminKey, "POST")).toEqual([405, expect.stringContaining("must be GET")]);
  expect(await scrape("ow_no_key")).toEqual([401, expect.stringContaining("CREDENTIAL_INVALID")]);

  await database.query(
    `insert into usage_hours (tenant_id, hour, namespace, claims, repeat_lateness)
     select $1, date_trunc('hour', now(), 'utc'), 'n-' || n, 1, '{}' from generate_series(1, 120) n`,
    [tenant.id],
  );
  const [, crowded] = await scrape(adminKey);
  const series = [...crowded.matchAll(/^onceward_usage_claims_total\{namespace="(.*)"\} (\d+)$/gm)];
  expect(series).toHaveLength(101);
  expect(series.find(([, name]) => name === "other")?.[2]).toBe("21");
  expect(series.reduce((sum, [, , value]) => sum + Number(value), 0)).toBe(123);
});

describeWithPrograms(["prometheus"], "Prometheus with an admin key", () => {
  test("sees counters that rise, and at midnight one that begins again", async () => {
    const onHttpPort = { ...replicas[0], managementPort: replicas[0].httpPort };
    const prometheus = await startPrometheus({ onceward: [onHttpPort] }, 1, undefined, adminKey);
    onTestFinished(() => prometheus.stop());
    const poll = (query: string) => expect.poll(() => prometheus.query(query), { timeout: 60_000 });
    await poll(CLAIMS).toEqual([3]);
    await grant(clients[1], { key: "one more" });
    await poll(CLAIMS).toEqual([4]);
    await database.query("update usage_hours set hour = hour - interval '1 day'", []);
    await grant(clients[1], { key: "of a new day" });
    await poll(CLAIMS).toEqual([1]);
    expect(await prometheus.query(`resets(${CLAIMS}[1m])`)).toEqual([1]);
    expect(await prometheus.query(`max_over_time(${CLAIMS}[1m])`)).toEqual([4]);
  });
});
