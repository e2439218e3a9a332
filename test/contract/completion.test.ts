import { expect, test } from "vitest";
import { Record_State } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import { runBatch } from "../support/calls/batches.ts";
import { errorOf } from "../support/calls/errors.ts";
import { complete, fingerprintOf, grant, lookUp, ORDER, seconds, success } from "../support/calls/verbs.ts";
import { secondsBetween } from "../support/database/time.ts";
import { describeSharedContract } from "../support/servers/shared-contract.ts";

const SEEN = { ...ORDER, completion: {} };
const EMPTY = { case: "completed", value: { result: { ...success(""), payload: new Uint8Array(0) } } };

describeSharedContract("A claim that completes its record", (contract) => {
  test("is recorded the first time, and answered with an empty result afterwards", async () => {
    const { client } = await contract.newCaller();
    const first = await client.claim({ ...SEEN, owner: "worker-1" });
    const { completedAt, expiresAt, state, leaseExpiresAt } = await lookUp(client);
    expect(first.outcome).toMatchObject({ case: "recorded", value: { completedAt } });
    expect([first.expiresAt, leaseExpiresAt, state]).toEqual([
      expiresAt,
      completedAt,
      Record_State.COMPLETED,
    ]);
    for (const request of [SEEN, ORDER]) {
      const repeat = await client.claim({ ...request, claimId: "another" });
      expect(repeat.outcome).toMatchObject(EMPTY);
      expect(repeat.outcome.value).toMatchObject({ completedAt, resultExpired: false });
    }
  });

  test("is recorded again for its own claim id, as long as the key is remembered", async () => {
    const caller = await contract.newCaller({ key_retention_s: 120, result_retention_s: 60 });
    const answer = async (claimId: string) => (await caller.client.claim({ ...SEEN, claimId })).outcome.case;
    expect(await answer("call-1")).toBe("recorded");
    expect(await answer("call-2")).toBe("completed");
    await caller.timePasses(100);
    expect([await answer("call-1"), await answer("call-2"), await answer("")]).toEqual([
      "recorded",
      "completed",
      "completed",
    ]);
    await caller.timePasses(30);
    expect([await answer("call-2"), await answer("call-1")]).toEqual(["recorded", "completed"]);
  });

  test("of twenty at once, one is recorded", async () => {
    const { client } = await contract.newCaller();
    const replies = await Promise.all(Array.from({ length: 20 }, () => client.claim(SEEN)));
    const outcomes = replies.map(({ outcome }) => outcome.case).sort();
    expect(outcomes).toEqual([...Array.from({ length: 19 }, () => "completed"), "recorded"]);
  });

  test("a batch records each key once, in its order", async () => {
    const { client } = await contract.newCaller();
    const claimOf = (key: string) => ({ case: "claim" as const, value: { ...SEEN, key } });
    const replies = await runBatch(client, ["a", "b", "a", "b", "c"].map(claimOf));
    expect(replies.map((reply) => reply?.case === "claim" && reply.value.outcome.case)).toEqual([
      "recorded",
      "recorded",
      "completed",
      "completed",
      "recorded",
    ]);
  });

  test("a key that is in progress or ambiguous is answered as to any claim", async () => {
    const caller = await contract.newCaller({ on_lease_expiry: "HOLD" });
    await grant(caller.client, { lease: seconds(10) });
    expect((await caller.client.claim(SEEN)).outcome.case).toBe("inProgress");
    await caller.timePasses(20);
    expect((await caller.client.claim(SEEN)).outcome.case).toBe("ambiguous");
    expect((await caller.client.claim({ ...SEEN, acceptAmbiguous: true })).outcome.case).toBe("recorded");
  });

  test("takes over a released or lapsed key as its next attempt, and fences its holder", async () => {
    const caller = await contract.newCaller();
    const { fencingToken } = await grant(caller.client, { lease: seconds(10) });
    await caller.timePasses(20);
    expect((await caller.client.claim(SEEN)).outcome.case).toBe("recorded");
    expect(await lookUp(caller.client)).toMatchObject({ attempt: 2, state: Record_State.COMPLETED });
    const late = caller.client.complete({ ...ORDER, fencingToken, result: success("late") });
    expect(await errorOf(late)).toMatchObject({ reason: "CLAIM_SUPERSEDED" });
  });

  test("waits for another holder, and is then recorded or answered with the result", async () => {
    const caller = await contract.newCaller();
    const { fencingToken } = await grant(caller.client);
    const waiting = caller.client.claim({ ...SEEN, wait: seconds(20) });
    await caller.untilWaiting(1);
    await caller.client.release({ ...ORDER, fencingToken });
    expect((await waiting).outcome.case).toBe("recorded");
  });

  test("does not replace a result, which it is answered with", async () => {
    const { client } = await contract.newCaller();
    await complete(client, success("receipt"));
    expect((await client.claim(SEEN)).outcome).toMatchObject({
      case: "completed",
      value: { result: success("receipt") },
    });
  });

  test("cannot be completed or released afterwards", async () => {
    const { client } = await contract.newCaller();
    await client.claim(SEEN);
    const { fencingToken } = await lookUp(client);
    const own = { ...ORDER, fencingToken };
    const errors = await Promise.all([
      errorOf(client.complete({ ...own, result: success("") })),
      errorOf(client.release(own)),
      errorOf(client.extendLease(own)),
    ]);
    expect(errors.map(({ reason }) => reason)).toEqual(errors.map(() => "ALREADY_COMPLETED"));
  });

  test("binds the key to its fingerprint", async () => {
    const { client } = await contract.newCaller();
    await client.claim({ ...SEEN, fingerprint: fingerprintOf("one"), claimId: "call-1" });
    const other = client.claim({ ...SEEN, fingerprint: fingerprintOf("other"), claimId: "call-1" });
    expect(await errorOf(other)).toMatchObject({ reason: "FINGERPRINT_MISMATCH" });
  });

  test("is remembered for the key's retention, also where results end earlier", async () => {
    const caller = await contract.newCaller({ key_retention_s: 120, result_retention_s: 60 });
    const { outcome, expiresAt } = await caller.client.claim(SEEN);
    const completedAt = outcome.case === "recorded" ? outcome.value.completedAt : undefined;
    expect(secondsBetween(completedAt, expiresAt)).toBeCloseTo(120, 5);
    await caller.timePasses(100);
    await caller.sweep();
    expect((await caller.client.claim(SEEN)).outcome).toMatchObject(EMPTY);
    await caller.timePasses(30);
    expect((await caller.client.claim(SEEN)).outcome.case).toBe("recorded");
  });

  test("is refused with a lease, which it does not need", async () => {
    const { client } = await contract.newCaller();
    expect(await errorOf(client.claim({ ...SEEN, lease: seconds(10) }))).toMatchObject({
      reason: "INVALID_REQUEST",
      fields: ["lease"],
      message: expect.stringContaining("must be unset with `completion`"),
    });
  });
});
