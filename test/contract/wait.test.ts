import { expect, test } from "vitest";
import { connectClient } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { granted } from "../support/calls/records.ts";
import { grant, lookUp, ORDER, seconds, success } from "../support/calls/verbs.ts";
import { describeContract } from "../support/servers/contract.ts";
import { describeSharedContract, type SharedCaller } from "../support/servers/shared-contract.ts";

const WAITING = { ...ORDER, wait: seconds(60) };
const result = success("done");

/** The caller twice: it holds ORDER, and waits for it. */
async function holderAndWaiter<Caller extends SharedCaller>(caller: Caller) {
  const { fencingToken } = await grant(caller.client);
  const waiting = caller.client.claim({ ...WAITING, owner: "waiter" });
  await caller.untilWaiting(1);
  return { ...caller, held: { ...ORDER, fencingToken }, waiting };
}

describeSharedContract("A claim that waits", (contract) => {
  test("is answered at once if there is nothing to wait for", async () => {
    const { client } = await contract.newCaller();
    const { fencingToken } = await grant(client, WAITING);
    await client.complete({ ...ORDER, fencingToken, result });
    expect((await client.claim(WAITING)).outcome.case).toBe("completed");
  });

  test("is answered with the result as soon as the claim is completed", async () => {
    const { client, held, waiting } = await holderAndWaiter(await contract.newCaller());
    const { expiresAt } = await client.complete({ ...held, result });
    expect(await waiting).toMatchObject({ outcome: { case: "completed", value: { result } }, expiresAt });
  });

  test("is granted when the claim is released", async () => {
    const { client, held, waiting } = await holderAndWaiter(await contract.newCaller());
    await client.release(held);
    const claim = granted(await waiting);
    expect(claim.attempt).toBe(2);
    expect(await lookUp(client)).toMatchObject({ owner: "waiter", fencingToken: claim.fencingToken });
  });

  test("is granted when the lease expires under RECLAIM", async () => {
    const { timePasses, waiting } = await holderAndWaiter(await contract.newCaller());
    await timePasses(31);
    expect(granted(await waiting).attempt).toBe(2);
  });

  test("is answered ambiguous when the lease expires under HOLD", async () => {
    const { timePasses, waiting } = await holderAndWaiter(
      await contract.newCaller({ on_lease_expiry: "HOLD" }),
    );
    await timePasses(31);
    expect((await waiting).outcome.case).toBe("ambiguous");
  });

  test("is answered that the claim is in progress when the wait ends", async () => {
    const { client, untilWaiting } = await contract.newCaller();
    await grant(client, { owner: "holder" });
    const { outcome } = await client.claim({ ...ORDER, wait: seconds(0.2) });
    expect(outcome).toMatchObject({ case: "inProgress", value: { owner: "holder" } });
    await untilWaiting(0);
  });

  test("keeps waiting when the lease is extended", async () => {
    const { client, held, untilWaiting, waiting } = await holderAndWaiter(await contract.newCaller());
    await client.extendLease({ ...held, lease: seconds(60) });
    await untilWaiting(1);
    await client.complete({ ...held, result });
    expect((await waiting).outcome.case).toBe("completed");
  });

  test("is one of many, of which a release grants exactly one", async () => {
    const { client, held, untilWaiting, waiting } = await holderAndWaiter(await contract.newCaller());
    const others = Array.from({ length: 9 }, () => client.claim(WAITING));
    await untilWaiting(10);
    await client.release(held);
    const first = await Promise.race([waiting, ...others]);
    await untilWaiting(9);
    await client.complete({ ...ORDER, fencingToken: granted(first).fencingToken, result });
    const outcomes = (await Promise.all([waiting, ...others])).map((reply) => reply.outcome.case).sort();
    expect(outcomes).toEqual(["claimed", ...Array.from({ length: 9 }, () => "completed")]);
  });

  test("ends when its caller disconnects, and is not granted afterwards", async () => {
    const { client, untilWaiting } = await contract.newCaller();
    const { fencingToken } = await grant(client, { owner: "holder" });
    const leaving = new AbortController();
    const waiting = errorOf(client.claim(WAITING, { signal: leaving.signal }));
    await untilWaiting(1);
    leaving.abort();
    expect((await waiting).code).toBe("Canceled");
    await untilWaiting(0);
    await client.release({ ...ORDER, fencingToken });
    expect(await lookUp(client)).toMatchObject({ owner: "holder", attempt: 1 });
  });

  test("recovers its own claim by its claim_id without waiting", async () => {
    const { client } = await contract.newCaller();
    const { fencingToken } = await grant(client, { claimId: "call-1" });
    expect(await grant(client, { ...WAITING, claimId: "call-1" })).toMatchObject({ fencingToken });
  });
});

describeContract("A claim that waits at a server", (contract) => {
  test("is answered in progress before its deadline, if that is sooner", async () => {
    const { client, timeoutHeader } = await contract.newCaller();
    await grant(client);
    const claimWithin = (timeoutMs: number) => client.claim(WAITING, { headers: timeoutHeader(timeoutMs) });
    // A busy machine misses its margin before a short deadline.
    const { outcome } = await claimWithin(2500).catch(() => claimWithin(12_000));
    expect(outcome.case).toBe("inProgress");
  });
});

describeContract("A claim that waits at one of several replicas", (contract) => {
  test("is woken by changes at another one", async () => {
    const { tenant, held, untilWaiting, waiting } = await holderAndWaiter(await contract.newCaller());
    const replica = connectClient(await contract.newReplica(), tenant.apiKey);
    await replica.release(held);
    const claim = granted(await waiting);
    const completed = connectClient(contract.server, tenant.apiKey).claim(WAITING);
    await untilWaiting(1);
    await replica.complete({ ...ORDER, fencingToken: claim.fencingToken, result });
    expect((await completed).outcome).toMatchObject({ case: "completed", value: { result } });
  });
});
