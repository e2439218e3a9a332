import { brotliCompressSync } from "node:zlib";
import { describe, expect, onTestFinished, test } from "vitest";
import { startBystander } from "../lab/fuzz/bystander.ts";
import { measureCosts } from "../lab/fuzz/costs.ts";
import { useTarget } from "../support/attacks/hostility.ts";
import { post } from "../support/network/raw-http.ts";
import { longestStall, withStallProbe } from "../support/servers/stalls.ts";
import { createApiKey, createTenant } from "../support/servers/tenants.ts";

const MIB = 1024 * 1024;
/** `npm run bench` checks 50 ms (P13) on an idle machine; machines that run tests are busy. */
const MAX_WORK_MS = 150;
/** RPCs with a list, a map, a mask or a large limit; `npm run lab -- fuzz` tests all RPCs. */
const RPCS_HERE = new Set(["Complete", "Batch", "UpdateNamespace"]);
/** The requests leave no memory in use, but their garbage may not have been collected yet. */
const MAX_ADDED_MB = 200;

const target = useTarget({ ONCEWARD_REQUEST_TIMEOUT: "30s" }, withStallProbe());

async function expectCheap(apiKeyOf: (role: "CALLER" | "TENANT_ADMIN" | "OPERATOR") => string | undefined) {
  const { server, database } = target;
  const { apiKey } = await createTenant(database);
  const bystander = startBystander({ server, apiKey, tls: undefined });
  const rssBeforeMb = await server.rssMb();
  const costs = await measureCosts(
    { server, apiKeyOf },
    { by: "longestWorkMs", suspectMs: MAX_WORK_MS, isMeasured: ({ name }) => RPCS_HERE.has(name) },
  );
  await bystander.stop();
  expect(costs.filter(({ ms }) => ms > MAX_WORK_MS)).toEqual([]);
  expect(bystander.failures).toEqual([]);
  expect((await server.rssMb()) - rssBeforeMb).toBeLessThan(MAX_ADDED_MB);
  await target.expectUnharmed();
  return costs;
}

describe("every costly request to every RPC by every transport", () => {
  test("is refused without a credential, and not read", { timeout: 180_000 }, async () => {
    const costs = await expectCheap(() => undefined);
    const other = costs.filter(({ code }) => code !== "Unauthenticated");
    expect(other).toEqual([]);
  });

  test("is cheap with a credential", { timeout: 180_000 }, async () => {
    const { database, tenant } = target;
    const keys = {
      CALLER: tenant.apiKey,
      TENANT_ADMIN: await createApiKey(database, { role: "TENANT_ADMIN", tenantId: tenant.id }),
      OPERATOR: await createApiKey(database, { role: "OPERATOR" }),
    };
    await expectCheap((role) => keys[role]);
  });
});

test("eight small anonymous messages that would inflate to 8 MiB of items delay no other call", async () => {
  const { server, database } = target;
  const { apiKey } = await createTenant(database);
  const bomb = brotliCompressSync(Buffer.alloc(8 * MIB, Uint8Array.of(0x0a, 0)));
  const sending = {
    contentType: "application/proto",
    apiKey: undefined,
    more: { "content-encoding": "br" },
  };
  const bystander = startBystander({ server, apiKey, tls: undefined });
  onTestFinished(() => bystander.stop());
  await longestStall(server);
  const rssBeforeMb = await server.rssMb();
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => post(server.httpPort, "Batch", sending, bomb)),
  );
  expect(answers.map(({ code }) => code)).toEqual(Array(8).fill("Unauthenticated"));
  expect((await longestStall(server)).longestWorkMs).toBeLessThan(MAX_WORK_MS);
  expect((await server.rssMb()) - rssBeforeMb).toBeLessThan(MAX_ADDED_MB);
});
