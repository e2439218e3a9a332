import { expect, test } from "vitest";
import { errorOf } from "../support/calls/errors.ts";
import { bytes, complete, grant, lookUp, ORDER, seconds } from "../support/calls/verbs.ts";
import { secondsBetween, secondsOf } from "../support/database/time.ts";
import { describeSharedContract } from "../support/servers/shared-contract.ts";

describeSharedContract("ExtendLease", (contract) => {
  test("prolongs the lease from now, and returns its end", async () => {
    const { client } = await contract.newCaller();
    const { fencingToken, leaseExpiresAt } = await grant(client);
    const extension = await client.extendLease({ ...ORDER, fencingToken, lease: seconds(300) });
    expect(secondsBetween(leaseExpiresAt, extension.leaseExpiresAt)).toBeGreaterThanOrEqual(270);
    expect(secondsOf(extension.leaseRemaining)).toBeGreaterThan(299);
    expect(secondsOf(extension.leaseRemaining)).toBeLessThanOrEqual(300);
    expect(await lookUp(client)).toMatchObject({
      leaseExpiresAt: extension.leaseExpiresAt,
      expiresAt: extension.expiresAt,
      fencingToken,
    });
  });

  test("without a lease prolongs by the claim's own, also after an extension by another one", async () => {
    const { client, timePasses } = await contract.newCaller();
    const { fencingToken } = await grant(client, { lease: seconds(7) });
    await client.extendLease({ ...ORDER, fencingToken, lease: seconds(60) });
    await timePasses(60);
    const { leaseRemaining } = await client.extendLease({ ...ORDER, fencingToken });
    expect(secondsOf(leaseRemaining)).toBeGreaterThan(6);
    expect(secondsOf(leaseRemaining)).toBeLessThanOrEqual(7);
  });

  test("never shortens a lease", async () => {
    const { client } = await contract.newCaller();
    const { fencingToken, leaseExpiresAt } = await grant(client, { lease: seconds(100) });
    const extension = await client.extendLease({ ...ORDER, fencingToken, lease: seconds(1) });
    expect(extension.leaseExpiresAt).toEqual(leaseExpiresAt);
    expect(secondsOf(extension.leaseRemaining)).toBeGreaterThan(99);
  });

  test("revives a lease that ran out if no other claimant has taken over", async () => {
    const { client, timePasses } = await contract.newCaller();
    const { fencingToken } = await grant(client);
    await timePasses(31);
    const { leaseRemaining } = await client.extendLease({ ...ORDER, fencingToken });
    expect(secondsOf(leaseRemaining)).toBeGreaterThan(29);
    expect((await client.claim(ORDER)).outcome.case).toBe("inProgress");
  });

  test("keeps the key remembered until the lease ends", async () => {
    const { client, timePasses } = await contract.newCaller({ key_retention_s: 60 });
    const { fencingToken } = await grant(client);
    await timePasses(50);
    const extension = await client.extendLease({ ...ORDER, fencingToken, lease: seconds(120) });
    expect(extension.expiresAt).toEqual(extension.leaseExpiresAt);
    await timePasses(100);
    expect((await client.claim(ORDER)).outcome.case).toBe("inProgress");
  });

  test("of a settled claim is refused, and changes nothing", async () => {
    const { client } = await contract.newCaller();
    const { fencingToken } = await complete(client);
    const completed = await lookUp(client);
    const extend = () => client.extendLease({ ...ORDER, fencingToken, checkpoint: { name: "late" } });
    expect(await errorOf(extend())).toMatchObject({
      code: "FailedPrecondition",
      reason: "ALREADY_COMPLETED",
    });
    expect(await lookUp(client)).toEqual(completed);
    const other = await grant(client, { key: "order-2" });
    const order2 = { ...ORDER, key: "order-2", fencingToken: other.fencingToken };
    await client.release(order2);
    expect(await errorOf(client.extendLease(order2))).toMatchObject({
      code: "FailedPrecondition",
      reason: "ALREADY_RELEASED",
    });
  });

  test("of a key that was never claimed, or whose retention has ended, finds no record", async () => {
    const { client, timePasses } = await contract.newCaller();
    const { fencingToken } = await grant(client);
    const missing = { code: "NotFound", reason: "RECORD_NOT_FOUND" };
    expect(await errorOf(client.extendLease({ ...ORDER, key: "never", fencingToken }))).toMatchObject(
      missing,
    );
    await timePasses(73 * 3600);
    expect(await errorOf(client.extendLease({ ...ORDER, fencingToken }))).toMatchObject(missing);
  });
});

describeSharedContract("A checkpoint", (contract) => {
  const charged = { name: "charged", state: bytes("receipt 17") };

  test("is replaced by the next one, and kept by an extension without one", async () => {
    const { client } = await contract.newCaller();
    const { fencingToken } = await grant(client);
    await client.extendLease({ ...ORDER, fencingToken, checkpoint: { name: "reserved", state: bytes("r") } });
    await client.extendLease({ ...ORDER, fencingToken, checkpoint: charged });
    await client.extendLease({ ...ORDER, fencingToken });
    expect((await lookUp(client)).checkpoint).toMatchObject(charged);
    await client.extendLease({ ...ORDER, fencingToken, checkpoint: { name: "mailed" } });
    expect((await lookUp(client)).checkpoint).toMatchObject({ name: "mailed", state: bytes("") });
  });

  test("is handed to the next claimant, after a release and after a lapse", async () => {
    const { client, timePasses } = await contract.newCaller();
    const first = await grant(client);
    await client.extendLease({ ...ORDER, fencingToken: first.fencingToken, checkpoint: charged });
    await client.release({ ...ORDER, fencingToken: first.fencingToken });
    expect((await grant(client)).checkpoint).toMatchObject(charged);
    await timePasses(31);
    expect((await grant(client)).checkpoint).toMatchObject(charged);
  });

  test("stays with a completed record", async () => {
    const { client } = await contract.newCaller();
    const { fencingToken } = await grant(client);
    await client.extendLease({ ...ORDER, fencingToken, checkpoint: charged });
    await client.complete({ ...ORDER, fencingToken, result: { kind: 1 } });
    expect((await lookUp(client)).checkpoint).toMatchObject(charged);
  });

  test("is gone once the key was forgotten", async () => {
    const { client, timePasses } = await contract.newCaller();
    const { fencingToken } = await grant(client);
    await client.extendLease({ ...ORDER, fencingToken, checkpoint: charged });
    await timePasses(73 * 3600);
    expect((await grant(client)).checkpoint).toBeUndefined();
    expect((await lookUp(client)).checkpoint).toBeUndefined();
  });

  test("is accepted at its maximum size", async () => {
    const { client } = await contract.newCaller();
    const { fencingToken } = await grant(client);
    const checkpoint = { name: "n".repeat(128), state: new Uint8Array(16 * 1024).fill(7) };
    await client.extendLease({ ...ORDER, fencingToken, checkpoint });
    expect((await lookUp(client)).checkpoint?.state).toHaveLength(16 * 1024);
  });
});
