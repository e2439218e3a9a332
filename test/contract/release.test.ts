import { expect, test } from "vitest";
import { Record_State } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import { errorOf } from "../support/calls/errors.ts";
import { complete, grant, lookUp, ORDER } from "../support/calls/verbs.ts";
import { describeSharedContract } from "../support/servers/shared-contract.ts";

describeSharedContract("Release", (contract) => {
  test("lets the next claim run at once, as a further attempt", async () => {
    const { client } = await contract.newCaller();
    const first = await grant(client, { owner: "worker-1", claimId: "call-1" });
    const release = await client.release({
      ...ORDER,
      fencingToken: first.fencingToken,
      reason: "bank\ntimed out",
    });
    const record = await lookUp(client);
    expect(record).toMatchObject({
      state: Record_State.RELEASED,
      releaseReason: "bank\ntimed out",
      owner: "worker-1",
      fencingToken: first.fencingToken,
      expiresAt: release.expiresAt,
    });
    expect(record.releasedAt).toBeDefined();
    const second = await grant(client, { owner: "worker-2" });
    expect(second).toMatchObject({ attempt: 2, firstClaimedAt: first.firstClaimedAt });
    const reclaimed = await lookUp(client);
    expect(reclaimed).toMatchObject({ state: Record_State.IN_PROGRESS, releaseReason: "" });
    expect(reclaimed.releasedAt).toBeUndefined();
  });

  test("can be repeated, and the first reason stays", async () => {
    const { client } = await contract.newCaller();
    const { fencingToken } = await grant(client);
    const first = await client.release({ ...ORDER, fencingToken, reason: "first" });
    const before = await lookUp(client);
    expect(await client.release({ ...ORDER, fencingToken, reason: "again" })).toEqual(first);
    expect(await lookUp(client)).toEqual(before);
  });

  test("of a completed claim is refused, and the result stays", async () => {
    const { client } = await contract.newCaller();
    const { fencingToken } = await complete(client);
    const before = await lookUp(client);
    expect(await errorOf(client.release({ ...ORDER, fencingToken }))).toMatchObject({
      code: "FailedPrecondition",
      reason: "ALREADY_COMPLETED",
    });
    expect(await lookUp(client)).toEqual(before);
  });

  test("that is repeated after a new claim is superseded, and the new claim stays", async () => {
    const { client } = await contract.newCaller();
    const { fencingToken } = await grant(client);
    await client.release({ ...ORDER, fencingToken });
    await grant(client, { owner: "worker-2" });
    expect(await errorOf(client.release({ ...ORDER, fencingToken }))).toMatchObject({
      code: "Aborted",
      reason: "CLAIM_SUPERSEDED",
    });
    expect((await lookUp(client)).state).toBe(Record_State.IN_PROGRESS);
  });

  test("of a key that was never claimed, or whose retention has ended, finds no record", async () => {
    const { client, timePasses } = await contract.newCaller();
    const { fencingToken } = await grant(client);
    const missing = { code: "NotFound", reason: "RECORD_NOT_FOUND" };
    expect(await errorOf(client.release({ ...ORDER, key: "never", fencingToken }))).toMatchObject(missing);
    await timePasses(73 * 3600);
    expect(await errorOf(client.release({ ...ORDER, fencingToken }))).toMatchObject(missing);
  });

  test("does not prolong the key's retention", async () => {
    const { client, timePasses } = await contract.newCaller();
    const { fencingToken } = await grant(client);
    await timePasses(20);
    const before = await lookUp(client);
    const { expiresAt } = await client.release({ ...ORDER, fencingToken });
    expect(expiresAt).toEqual(before.expiresAt);
  });
});
