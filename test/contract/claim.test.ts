import { expect, test } from "vitest";
import { errorOf } from "../support/calls/errors.ts";
import { granted } from "../support/calls/records.ts";
import { complete, failure, grant, lookUp, ORDER, seconds, success } from "../support/calls/verbs.ts";
import { secondsBetween, secondsOf } from "../support/database/time.ts";
import { describeSharedContract } from "../support/servers/shared-contract.ts";

describeSharedContract("Claim", (contract) => {
  test("the first claim of a key is granted, and the second one is answered in progress", async () => {
    const { client } = await contract.newCaller();
    const first = await client.claim({ ...ORDER, owner: "worker-1" });
    const second = await client.claim({ ...ORDER, owner: "worker-2" });
    expect(first.outcome).toMatchObject({ case: "claimed", value: { attempt: 1 } });
    expect(second.outcome).toMatchObject({ case: "inProgress", value: { owner: "worker-1", attempt: 1 } });
    expect(second.expiresAt).toEqual(first.expiresAt);
  });

  test("a granted claim says when it began, its lease, and that there is no checkpoint", async () => {
    const { client } = await contract.newCaller();
    const claim = await grant(client, { lease: seconds(20) });
    const { claimedAt, leaseExpiresAt } = await lookUp(client);
    expect(claim.fencingToken).toBeGreaterThan(0n);
    expect(claim.firstClaimedAt).toEqual(claimedAt);
    expect(claim.leaseExpiresAt).toEqual(leaseExpiresAt);
    expect(secondsBetween(claimedAt, claim.leaseExpiresAt)).toBeCloseTo(20, 5);
    expect(secondsOf(claim.leaseRemaining)).toBeGreaterThan(19);
    expect(secondsOf(claim.leaseRemaining)).toBeLessThanOrEqual(20);
    expect(claim.checkpoint).toBeUndefined();
  });

  test("an answer in progress has the end of the lease and a retry delay", async () => {
    const { client } = await contract.newCaller();
    const claim = await grant(client, { lease: seconds(20) });
    const { outcome } = await client.claim(ORDER);
    expect(outcome).toMatchObject({
      case: "inProgress",
      value: { leaseExpiresAt: claim.leaseExpiresAt, retryAfter: { seconds: 1n, nanos: 0 } },
    });
  });

  test("a completed key is answered with the result to every claimant", async () => {
    const { client } = await contract.newCaller();
    const { fencingToken } = await grant(client);
    const completion = await client.complete({ ...ORDER, fencingToken, result: success("receipt 17") });
    const repeat = await client.claim({ ...ORDER, owner: "somebody else", claimId: "another" });
    expect(repeat.outcome).toMatchObject({
      case: "completed",
      value: { result: success("receipt 17"), resultExpired: false, completedAt: completion.completedAt },
    });
    expect(repeat.expiresAt).toEqual(completion.expiresAt);
  });

  test("a terminal failure is replayed like a success", async () => {
    const { client } = await contract.newCaller();
    await complete(client, failure("card declined"));
    const { outcome } = await client.claim(ORDER);
    expect(outcome).toMatchObject({ case: "completed", value: { result: failure("card declined") } });
  });

  test("keys are compared byte by byte", async () => {
    const { client } = await contract.newCaller();
    const keys = ["caf\u00e9", "cafe\u0301", "CAF\u00c9", "cafe", "cafe "];
    for (const key of keys) await grant(client, { key });
    const again = await client.claim({ ...ORDER, key: "caf\u00e9" });
    expect(again.outcome.case).toBe("inProgress");
  });

  test("namespaces are separate, for any characters at the end of one and the start of the key", async () => {
    const { client } = await contract.newCaller();
    for (const [namespace, key] of [
      ["a", "b:c"],
      ["a.b", "c"],
      ["a", "b.c"],
      ["a-b", "c"],
      ["a", "-b-c"],
    ] as const) {
      await grant(client, { namespace, key });
    }
  });

  test("every key and namespace within the limits is accepted", async () => {
    const { client } = await contract.newCaller();
    await grant(client, { namespace: "0", key: "k".repeat(255) });
    await grant(client, { namespace: `a${"._-".repeat(20)}bc`, key: "\u20ac".repeat(85) });
    await grant(client, { key: '"quotes", \\backslashes\\, {braces}, NULL and \'; drop table records' });
  });

  test("of two concurrent claims at most one is granted", async () => {
    const { client } = await contract.newCaller();
    const replies = await Promise.all(Array.from({ length: 20 }, () => client.claim(ORDER)));
    const outcomes = replies.map((reply) => reply.outcome.case).sort();
    expect(outcomes).toEqual(["claimed", ...Array.from({ length: 19 }, () => "inProgress")]);
  });
});

describeSharedContract("A repeated claim_id", (contract) => {
  const request = { ...ORDER, claimId: "call-1", owner: "worker-1" };

  test("returns the same claim with the same token while it is unfinished and its lease runs", async () => {
    const { client, timePasses } = await contract.newCaller();
    const first = await client.claim({ ...request, lease: seconds(30) });
    await timePasses(10);
    const { leaseExpiresAt, expiresAt } = await lookUp(client);
    const again = await client.claim(request);
    const [claim, same] = [granted(first), granted(again)];
    expect(same).toMatchObject({ fencingToken: claim.fencingToken, attempt: 1, leaseExpiresAt });
    expect(again.expiresAt).toEqual(expiresAt);
    expect(secondsOf(same.leaseRemaining)).toBeLessThanOrEqual(20);
  });

  test("returns the claim with the checkpoint that was saved since", async () => {
    const { client } = await contract.newCaller();
    const { fencingToken } = await grant(client, request);
    await client.extendLease({ ...ORDER, fencingToken, checkpoint: { name: "charged" } });
    expect(await grant(client, request)).toMatchObject({ fencingToken, checkpoint: { name: "charged" } });
  });

  test("is a new claim once the lease has expired", async () => {
    const { client, timePasses } = await contract.newCaller();
    const first = await grant(client, request);
    await timePasses(31);
    const second = await grant(client, request);
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
    expect(second.attempt).toBe(2);
  });

  test("is ambiguous once the lease has expired under HOLD", async () => {
    const { client, timePasses } = await contract.newCaller({ on_lease_expiry: "HOLD" });
    await grant(client, request);
    await timePasses(31);
    const { outcome } = await client.claim(request);
    expect(outcome).toMatchObject({ case: "ambiguous", value: { owner: "worker-1" } });
  });

  test("is in progress once another claimant has taken over", async () => {
    const { client, timePasses } = await contract.newCaller();
    await grant(client, request);
    await timePasses(31);
    await grant(client, { claimId: "call-2" });
    const { outcome } = await client.claim(request);
    expect(outcome.case).toBe("inProgress");
  });

  test("is answered with the result once the claim is completed", async () => {
    const { client } = await contract.newCaller();
    const { fencingToken } = await grant(client, request);
    await client.complete({ ...ORDER, fencingToken, result: success("done") });
    const { outcome } = await client.claim(request);
    expect(outcome).toMatchObject({ case: "completed", value: { result: success("done") } });
  });

  test("is a new claim once the claim was released", async () => {
    const { client } = await contract.newCaller();
    const { fencingToken } = await grant(client, request);
    await client.release({ ...ORDER, fencingToken });
    const second = await grant(client, request);
    expect(second.fencingToken).toBeGreaterThan(fencingToken);
    expect(second.attempt).toBe(2);
  });

  test("is refused with another fingerprint", async () => {
    const { client } = await contract.newCaller();
    await grant(client, { ...request, fingerprint: new Uint8Array(32).fill(1) });
    const mismatch = client.claim({ ...request, fingerprint: new Uint8Array(32).fill(2) });
    expect(await errorOf(mismatch)).toMatchObject({ reason: "FINGERPRINT_MISMATCH" });
  });

  test("recovers only a claim of the same key", async () => {
    const { client } = await contract.newCaller();
    const first = await grant(client, request);
    const other = await grant(client, { ...request, key: "order-2" });
    expect(other.fencingToken).not.toBe(first.fencingToken);
  });

  test("that is empty recovers nothing", async () => {
    const { client } = await contract.newCaller();
    await grant(client);
    const { outcome } = await client.claim(ORDER);
    expect(outcome.case).toBe("inProgress");
  });
});
