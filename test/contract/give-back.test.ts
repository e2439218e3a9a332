import { timestampMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { Record_State } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import { errorOf } from "../support/calls/errors.ts";
import { grant, lookUp, ORDER, seconds, success } from "../support/calls/verbs.ts";
import { describeContractOnce } from "../support/servers/contract.ts";
import { describeSharedContract } from "../support/servers/shared-contract.ts";

const LATER = { owner: "resolver", acceptAmbiguous: true };

describeSharedContract("A claim that is given back", (contract) => {
  test("leaves an ambiguous record as it was before the claim", async () => {
    const { client, timePasses } = await contract.newCaller({ on_lease_expiry: "HOLD" });
    await grant(client, { owner: "worker-1", claimId: "call-1" });
    await timePasses(31);
    const before = await lookUp(client);
    const { fencingToken, attempt, unknown } = await grant(client, LATER);
    expect({ attempt, unknown }).toMatchObject({
      attempt: 2,
      unknown: { owner: "worker-1", attempt: 1, leaseExpiredAt: before.leaseExpiresAt },
    });
    await client.release({ ...ORDER, fencingToken, reason: "still open", giveBack: true });
    expect(before.state).toBe(Record_State.AMBIGUOUS);
    const { expiresAt, ...after } = await lookUp(client);
    expect(before).toMatchObject(after);
    expect(timestampMs(expiresAt as never)).toBeGreaterThan(timestampMs(before.expiresAt as never));
    expect((await client.claim(ORDER)).outcome).toMatchObject({
      case: "ambiguous",
      value: { owner: "worker-1", attempt: 1, leaseExpiredAt: before.leaseExpiresAt },
    });
  });

  test("can be given back again, and neither extended nor completed", async () => {
    const { client, timePasses } = await contract.newCaller({ on_lease_expiry: "HOLD" });
    await grant(client);
    await timePasses(31);
    const { fencingToken } = await grant(client, LATER);
    const back = { ...ORDER, fencingToken, giveBack: true };
    const first = await client.release(back);
    const record = await lookUp(client);
    expect(await client.release(back)).toEqual(first);
    const superseded = { reason: "CLAIM_SUPERSEDED" };
    expect(await errorOf(client.extendLease({ ...ORDER, fencingToken }))).toMatchObject(superseded);
    expect(await errorOf(client.release({ ...ORDER, fencingToken }))).toMatchObject(superseded);
    const result = success("done");
    expect(await errorOf(client.complete({ ...ORDER, fencingToken, result }))).toMatchObject(superseded);
    expect(await lookUp(client)).toEqual(record);
  });

  test("was of a holder that only stalled: it may extend, complete and release as before", async () => {
    const { client, timePasses } = await contract.newCaller({ on_lease_expiry: "HOLD" });
    for (const key of ["completes", "releases"]) {
      const { fencingToken: late } = await grant(client, { key });
      await timePasses(31);
      const { fencingToken } = await grant(client, { ...LATER, key });
      const back = { ...ORDER, key, fencingToken, giveBack: true };
      await client.release(back);
      const own = { ...ORDER, key, fencingToken: late };
      await client.extendLease(own);
      expect((await client.claim({ ...ORDER, ...LATER, key })).outcome.case).toBe("inProgress");
      await client.release(back);
      if (key === "completes") await client.complete({ ...own, result: success("done") });
      else await client.release({ ...own, giveBack: true });
      const { outcome } = await client.claim({ ...ORDER, key });
      expect(outcome.case).toBe(key === "completes" ? "completed" : "claimed");
      if (outcome.case === "claimed") expect(outcome.value.fencingToken).toBeGreaterThan(fencingToken);
    }
  });

  test("counts no attempt, however often, and tokens rise", async () => {
    const { client, timePasses } = await contract.newCaller({ on_lease_expiry: "HOLD" });
    const { fencingToken: original } = await grant(client, { owner: "worker-1" });
    await timePasses(31);
    const tokens = [original];
    for (let searches = 0; searches < 3; searches++) {
      const { fencingToken, attempt, unknown } = await grant(client, LATER);
      expect({ attempt, owner: unknown?.owner }).toEqual({ attempt: 2, owner: "worker-1" });
      tokens.push(fencingToken);
      await client.release({ ...ORDER, fencingToken, giveBack: true });
    }
    expect(tokens.toSorted((a, b) => (a < b ? -1 : 1))).toEqual(tokens);
    expect(new Set(tokens).size).toBe(4);
  });

  test("leaves a lapsed record to the next claim", async () => {
    const { client, timePasses } = await contract.newCaller();
    await grant(client, { owner: "worker-1" });
    await timePasses(31);
    const { fencingToken } = await grant(client, { owner: "resolver" });
    await client.release({ ...ORDER, fencingToken, giveBack: true });
    expect(await grant(client)).toMatchObject({ attempt: 2, unknown: { owner: "worker-1", attempt: 1 } });
  });

  test.each(["HOLD", "RECLAIM"])(
    "tells the next one of the crash before it, after two searches under %s",
    async (on_lease_expiry) => {
      const { client, timePasses } = await contract.newCaller({ on_lease_expiry });
      await grant(client);
      await timePasses(31);
      const { fencingToken: stalled } = await grant(client, LATER);
      await timePasses(31);
      const { fencingToken: later } = await grant(client, LATER);
      for (const fencingToken of [later, stalled])
        await client.release({ ...ORDER, fencingToken, giveBack: true });
      expect(await grant(client, LATER)).toMatchObject({ attempt: 3, unknown: { owner: "resolver" } });
    },
  );

  test("becomes ambiguous with its own lease if its holder crashes", async () => {
    const { client, timePasses } = await contract.newCaller({ on_lease_expiry: "HOLD" });
    await grant(client);
    await timePasses(31);
    await grant(client, LATER);
    await timePasses(31);
    expect((await client.claim(ORDER)).outcome.case).toBe("ambiguous");
    expect(await grant(client, LATER)).toMatchObject({
      attempt: 3,
      unknown: { owner: "resolver", attempt: 2 },
    });
  });

  test("can't be given back once it is released", async () => {
    const { client, timePasses } = await contract.newCaller({ on_lease_expiry: "HOLD" });
    await grant(client);
    await timePasses(31);
    const { fencingToken } = await grant(client, LATER);
    await client.release({ ...ORDER, fencingToken });
    const released = await lookUp(client);
    await client.release({ ...ORDER, fencingToken, giveBack: true });
    expect(await lookUp(client)).toEqual(released);
  });

  test("is released if it took over a released record, or none", async () => {
    const { client } = await contract.newCaller({ on_lease_expiry: "HOLD" });
    for (const attempt of [1, 2]) {
      const { fencingToken, unknown, ...claimed } = await grant(client);
      expect(claimed.attempt).toBe(attempt);
      expect(unknown).toBeUndefined();
      await client.release({ ...ORDER, fencingToken, reason: "left", giveBack: true });
      expect(await lookUp(client)).toMatchObject({ state: Record_State.RELEASED, releaseReason: "left" });
    }
  });
});

describeContractOnce("A claim that is given back", (contract) => {
  test("keeps the key for as long as it would have been kept without the claim", async () => {
    const { client, timePasses } = await contract.newCaller({ on_lease_expiry: "HOLD" });
    await grant(client);
    await timePasses(31);
    const { expiresAt } = await lookUp(client);
    const { fencingToken } = await grant(client, { ...LATER, retention: seconds(60) });
    expect((await lookUp(client)).expiresAt).toEqual(expiresAt);
    await client.release({ ...ORDER, fencingToken, giveBack: true });
    expect((await lookUp(client)).expiresAt).toEqual(expiresAt);
  });
});
