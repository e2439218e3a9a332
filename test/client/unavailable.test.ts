import { createOnceward, type Onceward, type OncewardEvent } from "@onceward/client";
import { afterAll, afterEach, expect, onTestFinished, test, vi } from "vitest";
import { startTcpProxy, type TcpProxy } from "../support/network/tcp-proxy.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";

const { database, server } = useServer();

afterAll(async () => {
  warn.mockRestore();
});

const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => {});

afterEach(() => {
  warn.mockClear();
});

/** A client whose network the test interrupts, and its events. */
async function newOnceward(): Promise<{ onceward: Onceward; proxy: TcpProxy; events: OncewardEvent[] }> {
  const { apiKey } = await createTenant(database);
  const proxy = await startTcpProxy(server.grpcPort);
  const events: OncewardEvent[] = [];
  const onceward = createOnceward({
    address: `http://127.0.0.1:${proxy.port}`,
    apiKey,
    timeoutMs: 300,
    onEvent: (event) => events.push(event),
  });
  onTestFinished(async () => {
    await onceward.close();
    await proxy.close();
  });
  return { onceward, proxy, events };
}

const operation = { namespace: "charges", key: "order-1" };
const failOpen = { ...operation, onUnavailable: "proceed" } as const;

test("a run without a claim says so, and is not stored", async () => {
  const { onceward, proxy, events } = await newOnceward();
  proxy.setMode("refuse");
  const run = () =>
    onceward.runDetailed(failOpen, async (claim) => {
      await claim.saveCheckpoint("charged", { charge: "ch_1" });
      const { guarded, attempt, fencingToken, checkpoint, signal } = claim;
      return { guarded, attempt, fencingToken: `${fencingToken}`, checkpoint, aborted: signal.aborted };
    });
  const results = [await run(), await run()];
  for (const result of results) {
    expect(result).toMatchObject({ guarded: false, replayed: false, attempt: 0, fencingToken: 0n });
    expect(result.value).toEqual({ guarded: false, attempt: 0, fencingToken: "0", aborted: false });
  }
  const unguarded = { namespace: "charges", type: "unguarded", reason: "NO_ANSWER" };
  expect(events).toEqual([unguarded, unguarded]);
  // Once per client; the events tell of each.
  expect(warn.mock.calls).toMatchObject([[expect.any(String), { code: "ONCEWARD_UNGUARDED" }]]);
  proxy.setMode("forward");
  expect(await onceward.runDetailed(operation, () => "again")).toMatchObject({
    guarded: true,
    replayed: false,
  });
});

test("a derived key is the same with a claim and without", async () => {
  const { onceward, proxy } = await newOnceward();
  proxy.setMode("refuse");
  const without = await onceward.run(failOpen, (claim) => claim.deriveKey("provider"));
  proxy.setMode("forward");
  expect(await onceward.run(operation, (claim) => claim.deriveKey("provider"))).toBe(without);
});
