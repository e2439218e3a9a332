import { expect, test } from "vitest";
import { Record_State } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import { errorOf } from "../support/calls/errors.ts";
import { grant, lookUp, ORDER, success } from "../support/calls/verbs.ts";
import { describeContract } from "../support/servers/contract.ts";

const MARKS = { marksBegin: true };

describeContract("A claim that marks when its effect begins", (contract) => {
  const HELD = [{ on_lease_expiry: "HOLD" }, { reclaim_within_s: 60 }];

  test.each(HELD)("goes to the next one if its lease ends before, under %o", async (policy) => {
    const { client, timePasses } = await contract.newCaller(policy);
    const first = await grant(client, { ...MARKS, owner: "worker-1" });
    await timePasses(20);
    await client.extendLease({ ...ORDER, fencingToken: first.fencingToken });
    await timePasses(71);
    expect((await lookUp(client)).state).toBe(Record_State.IN_PROGRESS);
    const { fencingToken, attempt, unknown } = await grant(client, MARKS);
    expect({ attempt, unknown }).toEqual({ attempt: 2, unknown: undefined });
    // Its effect has not begun either.
    await client.release({ ...ORDER, fencingToken, giveBack: true });
    expect((await lookUp(client)).state).toBe(Record_State.RELEASED);
    await grant(client, MARKS);
    await timePasses(31);
    expect(await grant(client)).toMatchObject({ attempt: 4 });
    await timePasses(31);
    expect((await client.claim(ORDER)).outcome.case).toBe("ambiguous");
  });

  test.each(HELD)("is held if its lease ends after, also one that was extended, under %o", async (policy) => {
    const { client, timePasses } = await contract.newCaller(policy);
    const { fencingToken } = await grant(client, MARKS);
    const begin = { ...ORDER, fencingToken, begin: true };
    await client.extendLease(begin);
    await timePasses(20);
    expect((await client.extendLease(begin)).expiresAt).toEqual((await lookUp(client)).expiresAt);
    await client.extendLease({ ...ORDER, fencingToken });
    await timePasses(61);
    expect((await client.claim({ ...ORDER, ...MARKS })).outcome.case).toBe("ambiguous");
    expect((await lookUp(client)).state).toBe(Record_State.AMBIGUOUS);
  });

  test("is held if it took over an unknown outcome, and can be given back", async () => {
    const { client, timePasses } = await contract.newCaller({ on_lease_expiry: "HOLD" });
    const { fencingToken } = await grant(client, { ...MARKS, owner: "worker-1" });
    await client.extendLease({ ...ORDER, fencingToken, begin: true });
    await timePasses(31);
    const accepting = { ...MARKS, owner: "worker-2", acceptAmbiguous: true };
    const second = await grant(client, accepting);
    expect(second.unknown).toMatchObject({ owner: "worker-1", attempt: 1 });
    await client.release({ ...ORDER, fencingToken: second.fencingToken, giveBack: true });
    expect(await lookUp(client)).toMatchObject({ state: Record_State.AMBIGUOUS, owner: "worker-1" });
    await grant(client, accepting);
    await timePasses(31);
    expect((await client.claim({ ...ORDER, ...MARKS })).outcome).toMatchObject({
      case: "ambiguous",
      value: { owner: "worker-2", attempt: 2 },
    });
  });

  test("cannot begin once it is superseded, released or completed", async () => {
    const { client, timePasses } = await contract.newCaller({ on_lease_expiry: "HOLD" });
    const { fencingToken } = await grant(client, MARKS);
    await timePasses(31);
    const second = await grant(client, MARKS);
    const reason = async (token: bigint) =>
      (await errorOf(client.extendLease({ ...ORDER, fencingToken: token, begin: true }))).reason;
    expect(await reason(fencingToken)).toBe("CLAIM_SUPERSEDED");
    await client.release({ ...ORDER, fencingToken: second.fencingToken });
    expect(await reason(second.fencingToken)).toBe("ALREADY_RELEASED");
    const third = await grant(client, MARKS);
    await client.complete({ ...ORDER, fencingToken: third.fencingToken, result: success("done") });
    expect(await reason(third.fencingToken)).toBe("ALREADY_COMPLETED");
  });

  test("is decided in a batch like a single one", async () => {
    const { client, timePasses } = await contract.newCaller({ on_lease_expiry: "HOLD" });
    const keys = ["marks", "does-not"];
    const claims = keys.map((key) => ({
      request: { case: "claim" as const, value: { ...ORDER, key, marksBegin: key === "marks" } },
    }));
    const outcomes = async () =>
      (await client.batch({ items: claims })).items.map(
        ({ response }) => response.case === "claim" && response.value.outcome.case,
      );
    expect(await outcomes()).toEqual(["claimed", "claimed"]);
    await timePasses(31);
    expect(await outcomes()).toEqual(["claimed", "ambiguous"]);
  });

  test("is held if a replica of the previous version extends it, which cannot mark it as begun", async () => {
    const { client, tenant, timePasses } = await contract.newCaller({ on_lease_expiry: "HOLD" });
    await grant(client, MARKS);
    await contract.database.query(
      "update records set lease_expires_at = coalesce(lease_expires_at, null) + interval '1 second' where tenant_id = $1",
      [tenant.id],
    );
    await timePasses(32);
    expect((await client.claim(ORDER)).outcome.case).toBe("ambiguous");
  });
});
