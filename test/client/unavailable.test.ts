import { createOnceward, type Onceward, type OncewardEvent, TerminalError } from "@onceward/client";
import { afterAll, afterEach, expect, onTestFinished, test, vi } from "vitest";
import { startTcpProxy, type TcpProxy } from "../helpers/network/tcp-proxy.ts";
import { createTenant } from "../helpers/servers/tenants.ts";
import { useServer } from "../helpers/servers/use-server.ts";

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

test("if the service is unreachable nothing runs, unless the call says 'proceed'", async () => {
  const { onceward, proxy } = await newOnceward();
  proxy.setMode("refuse");
  const fn = vi.fn(() => "charged");
  await expect(onceward.run(operation, fn)).rejects.toMatchObject({ reason: "NO_ANSWER" });
  expect(fn).not.toHaveBeenCalled();
  expect(await onceward.run(failOpen, fn)).toBe("charged");
});

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

test("an error of a function without a claim is rethrown unchanged", async () => {
  const { onceward, proxy, events } = await newOnceward();
  proxy.setMode("refuse");
  for (const thrown of [new Error("the provider is down"), new TerminalError("card declined")]) {
    const run = onceward.run(failOpen, () => {
      throw thrown;
    });
    await expect(run).rejects.toBe(thrown);
  }
  expect(events.map(({ type }) => type)).toEqual(["unguarded", "unguarded"]);
});

test("a refusal is final, also with onUnavailable 'proceed'", async () => {
  const { onceward } = await newOnceward();
  await onceward.run({ ...operation, fingerprint: 1 }, () => "charged");
  const fn = vi.fn();
  await expect(onceward.run({ ...failOpen, fingerprint: 2 }, fn)).rejects.toMatchObject({
    reason: "FINGERPRINT_MISMATCH",
  });
  await onceward.close();
  await expect(onceward.run(failOpen, fn)).rejects.toMatchObject({ reason: "CLOSED" });
  await using stranger = createOnceward({ address: `http://127.0.0.1:${server.grpcPort}`, apiKey: "ow_x_y" });
  await expect(stranger.run(failOpen, fn)).rejects.toMatchObject({ reason: "CREDENTIAL_INVALID" });
  expect(fn).not.toHaveBeenCalled();
});

test("after an outage during a wait, the function does not run without a claim", async () => {
  const { onceward, proxy, events } = await newOnceward();
  await onceward.calls.claim({ ...operation, owner: "worker-1" });
  const fn = vi.fn();
  const waiter = onceward.run({ ...failOpen, waitMs: 500 }, fn);
  waiter.catch(() => {});
  await vi.waitFor(() => expect(events).toEqual([{ namespace: "charges", type: "waiting" }]), 30_000);
  proxy.setMode("refuse");
  await expect(waiter).rejects.toMatchObject({ reason: "NO_ANSWER" });
  expect(fn).not.toHaveBeenCalled();
});
