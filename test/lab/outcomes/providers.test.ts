import { once } from "node:events";
import { connect } from "node:net";
import { createTestingOnceward } from "@onceward/client/testing";
import { expect, test } from "vitest";
import { charge, RESOLVE } from "../../support/providers/charge.ts";
import { FakeProvider, type ProviderKind } from "../../support/providers/provider.ts";

const LAG_MS = 60_000;
const LEASE_MS = 1000;
const operation = {
  namespace: "charges",
  key: "order-1",
  leaseMs: LEASE_MS,
  waitMs: 0,
  onError: "unknown",
} as const;

const found = { "stored-answer": 1, "latest-status": 1, cancel: 2, search: 1 };
const kinds = Object.keys(found) as Exclude<ProviderKind, "no-key">[];

test.each(kinds.flatMap((kind) => (["asked", "charged"] as const).map((moment) => [kind, moment] as const)))(
  "%s: an attempt whose connection breaks once it has %s leaves one charge",
  async (kind, moment) => {
    await using service = createTestingOnceward({ policy: { onLeaseExpiry: "HOLD" } });
    const breaking = new Set([moment]);
    const nowMs = () => service.clock.nowMs;
    const on = async (at: typeof moment) => (breaking.delete(at) ? ("break" as const) : undefined);
    await using provider = new FakeProvider(kind, { lagMs: LAG_MS, nowMs, on });
    const address = { kind, url: await provider.listen(), lagMs: LAG_MS };
    const run = () =>
      service.onceward.run({ ...operation, resolve: RESOLVE[kind](address) }, (claim) =>
        charge(address, claim),
      );

    await expect(run()).rejects.toThrow();
    service.clock.advance(LEASE_MS);
    if (kind === "search") {
      await expect(run()).rejects.toMatchObject({ reason: "IN_PROGRESS" });
      service.clock.advance(LAG_MS + LEASE_MS + 1);
    }
    const id = moment === "charged" ? found[kind] : 1;
    expect(await run()).toBe(id);
    expect(await run()).toBe(id);
    expect(provider.chargesOf("order-1").map((each) => each.id)).toEqual([id]);
  },
);

test("no key at all: a second call is a second charge", async () => {
  await using service = createTestingOnceward();
  await using provider = new FakeProvider("no-key");
  const address = { kind: provider.kind, url: await provider.listen(), lagMs: 0 };
  await service.onceward.run({ ...operation, acceptAmbiguous: true }, async (claim) => [
    await charge(address, claim),
    await charge(address, claim),
  ]);
  expect(provider.chargesOf("order-1")).toHaveLength(2);
});

test("a caller that dies within its request ends nothing but its request", async () => {
  await using provider = new FakeProvider("no-key");
  const socket = connect(Number(new URL(await provider.listen()).port), "127.0.0.1");
  socket.write("POST /charges HTTP/1.1\r\nhost: bank\r\nexpect: 100-continue\r\ncontent-length: 9\r\n\r\n{");
  await once(socket, "data");
  socket.destroy();
  await once(socket, "close");
});
