import { expect, test } from "vitest";
import { Record_State } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import { errorOf } from "../support/calls/errors.ts";
import { bytes, grant, lookUp, ORDER, success } from "../support/calls/verbs.ts";
import { describeSharedContractOnce } from "../support/servers/shared-contract.ts";

const result = success("done");

describeSharedContractOnce("When a lease runs out", (contract) => {
  const POLICIES = ["RECLAIM", "HOLD"];

  test.each(POLICIES)("its holder may still complete under %s", async (policy) => {
    const { client, timePasses } = await contract.newCaller({ on_lease_expiry: policy });
    const { fencingToken } = await grant(client);
    await timePasses(31);
    const completion = await client.complete({ ...ORDER, fencingToken, result });
    expect(completion.alreadyCompleted).toBe(false);
    expect((await client.claim(ORDER)).outcome).toMatchObject({ case: "completed", value: { result } });
  });

  test.each(POLICIES)("its holder may still release under %s, and any claim is granted", async (policy) => {
    const { client, timePasses } = await contract.newCaller({ on_lease_expiry: policy });
    const { fencingToken } = await grant(client);
    await timePasses(31);
    await client.release({ ...ORDER, fencingToken });
    expect((await lookUp(client)).state).toBe(Record_State.RELEASED);
    expect(await grant(client)).toMatchObject({ attempt: 2 });
  });
});

describeSharedContractOnce("When a lease runs out under RECLAIM", (contract) => {
  test("the next claim gets the key, as a further attempt of the same operation", async () => {
    const { client, timePasses } = await contract.newCaller();
    const first = await grant(client, { owner: "worker-1" });
    await timePasses(31);
    expect((await lookUp(client)).state).toBe(Record_State.IN_PROGRESS);
    const second = await grant(client, { owner: "worker-2" });
    expect(second.attempt).toBe(2);
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
    expect(await lookUp(client)).toMatchObject({
      owner: "worker-2",
      firstClaimedAt: second.firstClaimedAt,
      fencingToken: second.fencingToken,
    });
  });

  test("its holder can change nothing once another claimant has taken over", async () => {
    const { client, timePasses } = await contract.newCaller();
    const { fencingToken } = await grant(client);
    await timePasses(31);
    await grant(client, { owner: "worker-2" });
    const before = await lookUp(client);
    const superseded = { code: "Aborted", reason: "CLAIM_SUPERSEDED", retryable: false };
    expect(await errorOf(client.complete({ ...ORDER, fencingToken, result }))).toMatchObject(superseded);
    expect(await errorOf(client.release({ ...ORDER, fencingToken }))).toMatchObject(superseded);
    expect(await errorOf(client.extendLease({ ...ORDER, fencingToken }))).toMatchObject(superseded);
    expect(await lookUp(client)).toEqual(before);
  });

  test("its holder is superseded even after the other one has completed with the same result", async () => {
    const { client, timePasses } = await contract.newCaller();
    const { fencingToken } = await grant(client);
    await timePasses(31);
    const second = await grant(client);
    await client.complete({ ...ORDER, fencingToken: second.fencingToken, result });
    expect(await errorOf(client.complete({ ...ORDER, fencingToken, result }))).toMatchObject({
      reason: "CLAIM_SUPERSEDED",
    });
  });
});

describeSharedContractOnce("When a lease runs out under HOLD", (contract) => {
  const HOLD = { on_lease_expiry: "HOLD" };

  test("a claim is answered ambiguous, with the owner and the checkpoint of the held claim", async () => {
    const { client, timePasses } = await contract.newCaller(HOLD);
    const { fencingToken } = await grant(client, { owner: "worker-1" });
    const checkpoint = { name: "charged", state: bytes("receipt 17") };
    const extension = await client.extendLease({ ...ORDER, fencingToken, checkpoint });
    expect(extension.expiresAt).toEqual((await lookUp(client)).expiresAt);
    await timePasses(31);
    const reply = await client.claim(ORDER);
    const record = await lookUp(client);
    expect(reply.outcome).toMatchObject({
      case: "ambiguous",
      value: { owner: "worker-1", attempt: 1, leaseExpiredAt: record.leaseExpiresAt, checkpoint },
    });
    expect(reply.expiresAt).toEqual(record.expiresAt);
    expect(record.state).toBe(Record_State.AMBIGUOUS);
  });

  test("a claim with accept_ambiguous takes over, with the checkpoint", async () => {
    const { client, timePasses } = await contract.newCaller(HOLD);
    const { fencingToken } = await grant(client);
    await client.extendLease({ ...ORDER, fencingToken, checkpoint: { name: "charged" } });
    await timePasses(31);
    const second = await grant(client, { acceptAmbiguous: true });
    expect(second).toMatchObject({ attempt: 2, checkpoint: { name: "charged" } });
    expect(second.fencingToken).toBeGreaterThan(fencingToken);
    expect(await errorOf(client.complete({ ...ORDER, fencingToken, result }))).toMatchObject({
      reason: "CLAIM_SUPERSEDED",
    });
  });

  test("a claim with accept_ambiguous is not granted a record that is not ambiguous", async () => {
    const { client } = await contract.newCaller(HOLD);
    const { fencingToken } = await grant(client, { acceptAmbiguous: true });
    expect((await client.claim({ ...ORDER, acceptAmbiguous: true })).outcome.case).toBe("inProgress");
    await client.complete({ ...ORDER, fencingToken, result });
    expect((await client.claim({ ...ORDER, acceptAmbiguous: true })).outcome.case).toBe("completed");
  });

  test("after a claim that accepted ambiguity, the next one needs accept_ambiguous again", async () => {
    const { client, timePasses } = await contract.newCaller(HOLD);
    await grant(client);
    await timePasses(31);
    await grant(client, { acceptAmbiguous: true });
    await timePasses(31);
    expect((await client.claim(ORDER)).outcome.case).toBe("ambiguous");
  });

  test("its holder may revive it, and it is in progress again", async () => {
    const { client, timePasses } = await contract.newCaller(HOLD);
    const { fencingToken } = await grant(client);
    await timePasses(31);
    await client.extendLease({ ...ORDER, fencingToken });
    expect((await client.claim({ ...ORDER, acceptAmbiguous: true })).outcome.case).toBe("inProgress");
  });

  test("the end of the key's retention ends the ambiguity too", async () => {
    const { client, timePasses } = await contract.newCaller(HOLD);
    await grant(client);
    await timePasses(73 * 3600);
    expect(await grant(client)).toMatchObject({ attempt: 1 });
  });
});

describeSharedContractOnce("When a lease runs out under RECLAIM with reclaim_within", (contract) => {
  const WITHIN = { reclaim_within_s: 120 };

  test("the key is taken over until the first claim is that old, and held afterwards", async () => {
    const { client, timePasses } = await contract.newCaller(WITHIN);
    await grant(client, { owner: "worker-1" });
    await timePasses(60);
    expect((await lookUp(client)).state).toBe(Record_State.IN_PROGRESS);
    expect(await grant(client, { owner: "worker-2" })).toMatchObject({ attempt: 2 });
    await timePasses(60);
    const { outcome } = await client.claim(ORDER);
    expect(outcome).toMatchObject({ case: "ambiguous", value: { owner: "worker-2", attempt: 2 } });
    expect((await lookUp(client)).state).toBe(Record_State.AMBIGUOUS);
    expect(await grant(client, { acceptAmbiguous: true })).toMatchObject({ attempt: 3 });
  });

  test("a release of a claim that took over leaves the one before it held afterwards", async () => {
    const { client, timePasses } = await contract.newCaller(WITHIN);
    const { fencingToken: late } = await grant(client, { owner: "worker-1" });
    await timePasses(60);
    const released = { ...ORDER, fencingToken: (await grant(client)).fencingToken };
    const first = await client.release(released);
    expect(await client.release(released)).toEqual(first);
    // Also one whose holder stalls until another claim has looked.
    const stalled = await grant(client, { owner: "worker-2" });
    expect(stalled).toMatchObject({ attempt: 2, unknown: { owner: "worker-1", attempt: 1 } });
    expect(stalled.fencingToken).toBeGreaterThan(released.fencingToken);
    await timePasses(31);
    const { fencingToken } = await grant(client, { acceptAmbiguous: true });
    await client.release({ ...ORDER, fencingToken, giveBack: true });
    await client.release({ ...ORDER, fencingToken: stalled.fencingToken });
    await timePasses(60);
    expect((await client.claim(ORDER)).outcome).toMatchObject({
      case: "ambiguous",
      value: { owner: "worker-2", attempt: 2 },
    });
    expect(await errorOf(client.complete({ ...ORDER, fencingToken: late, result }))).toMatchObject({
      reason: "CLAIM_SUPERSEDED",
    });
    const { fencingToken: accepting } = await grant(client, { acceptAmbiguous: true });
    await client.release({ ...ORDER, fencingToken: accepting });
    expect(await grant(client)).toMatchObject({ attempt: 4 });
  });

  test("a batch is decided like single claims", async () => {
    const { client, timePasses } = await contract.newCaller(WITHIN);
    const keys = ["a", "b"];
    for (const key of keys) await grant(client, { key });
    const claims = keys.map((key) => ({ request: { case: "claim" as const, value: { ...ORDER, key } } }));
    const outcomes = async () =>
      (await client.batch({ items: claims })).items.map(
        ({ response }) => response.case === "claim" && response.value.outcome.case,
      );
    await timePasses(90);
    expect(await outcomes()).toEqual(["claimed", "claimed"]);
    await timePasses(31);
    expect(await outcomes()).toEqual(["ambiguous", "ambiguous"]);
  });

  test("its holder may still complete, release and extend afterwards", async () => {
    const { client, timePasses } = await contract.newCaller(WITHIN);
    const { fencingToken } = await grant(client);
    await timePasses(121);
    await client.extendLease({ ...ORDER, fencingToken });
    expect((await client.claim(ORDER)).outcome.case).toBe("inProgress");
    await timePasses(31);
    await client.release({ ...ORDER, fencingToken });
    // Its effect did not happen; the next attempt's may have.
    await grant(client);
    await timePasses(31);
    expect((await client.claim(ORDER)).outcome.case).toBe("ambiguous");
  });

  test("a new life of the key begins a new time", async () => {
    const { client, timePasses } = await contract.newCaller({ ...WITHIN, key_retention_s: 180 });
    await grant(client);
    await timePasses(181);
    expect(await grant(client)).toMatchObject({ attempt: 1 });
    await timePasses(119);
    expect(await grant(client)).toMatchObject({ attempt: 2 });
  });

  test("HOLD of a namespace applies where it inherits reclaim_within", async () => {
    const { client, timePasses } = await contract.newCaller(WITHIN, {
      charges: { on_lease_expiry: "HOLD" },
    });
    await grant(client);
    await timePasses(31);
    expect((await client.claim(ORDER)).outcome.case).toBe("ambiguous");
  });
});
