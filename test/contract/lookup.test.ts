import { expect, test } from "vitest";
import { Record_State } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import {
  bytes,
  complete,
  fingerprintOf,
  grant,
  lookUp,
  ORDER,
  seconds,
  success,
} from "../support/calls/verbs.ts";
import { describeContract } from "../support/servers/contract.ts";
import { describeSharedContract } from "../support/servers/shared-contract.ts";

describeSharedContract("Lookup", (contract) => {
  test("of a key that was never claimed, or is forgotten, returns no record", async () => {
    const { client, timePasses } = await contract.newCaller();
    expect((await client.lookup(ORDER)).record).toBeUndefined();
    await complete(client);
    await timePasses(73 * 3600);
    expect((await client.lookup(ORDER)).record).toBeUndefined();
  });

  test("of a claim in progress returns all its fields", async () => {
    const { client } = await contract.newCaller();
    const fingerprint = fingerprintOf("charge 10 EUR");
    const reply = await client.claim({ ...ORDER, fingerprint, owner: "worker-1", lease: seconds(9) });
    if (reply.outcome.case !== "claimed") throw new Error(`answered ${reply.outcome.case}`);
    const { fencingToken, leaseExpiresAt, firstClaimedAt } = reply.outcome.value;
    expect(await lookUp(client)).toMatchObject({
      ...ORDER,
      state: Record_State.IN_PROGRESS,
      fencingToken,
      attempt: 1,
      owner: "worker-1",
      fingerprint,
      firstClaimedAt,
      claimedAt: firstClaimedAt,
      leaseExpiresAt,
      expiresAt: reply.expiresAt,
      releaseReason: "",
      resultExpired: false,
    });
    const { completedAt, releasedAt, result, checkpoint, resultExpiresAt } = await lookUp(client);
    expect([completedAt, releasedAt, result, checkpoint, resultExpiresAt]).toEqual(
      Array.from({ length: 5 }, () => undefined),
    );
  });

  test("of a completed key returns its result until its retention ends", async () => {
    const { client, timePasses } = await contract.newCaller({ result_retention_s: 3600 });
    await complete(client, success("receipt 17"));
    const early = await lookUp(client);
    expect(early).toMatchObject({
      state: Record_State.COMPLETED,
      result: success("receipt 17"),
      resultExpired: false,
    });
    expect(early.resultExpiresAt).toBeDefined();
    await timePasses(3601);
    const late = await lookUp(client);
    expect(late).toMatchObject({ state: Record_State.COMPLETED, resultExpired: true });
    expect(late.result).toBeUndefined();
    expect(late.resultExpiresAt).toBeDefined();
  });
});

describeContract("Lookup on a server", (contract) => {
  test("changes nothing", async () => {
    const { client, tenant, timePasses } = await contract.newCaller();
    const { fencingToken } = await grant(client);
    await client.extendLease({ ...ORDER, fencingToken, checkpoint: { name: "a", state: bytes("b") } });
    await timePasses(31);
    const row = "select r.*, r.xmin from records r where tenant_id = $1";
    const before = await contract.database.query(row, [tenant.id]);
    await lookUp(client);
    await client.lookup({ ...ORDER, key: "never" });
    expect(await contract.database.query(row, [tenant.id])).toEqual(before);
  });
});
