import { expect, test } from "vitest";
import { errorOf } from "../support/calls/errors.ts";
import { complete, failure, grant, lookUp, ORDER, seconds, success } from "../support/calls/verbs.ts";
import { secondsBetween } from "../support/database/time.ts";
import { describeContractOnce } from "../support/servers/contract.ts";
import { describeSharedContractOnce } from "../support/servers/shared-contract.ts";

const HOUR_S = 3600;

describeSharedContractOnce("Retention", (contract) => {
  test("of an unfinished key counts from its newest claim", async () => {
    const { client, timePasses } = await contract.newCaller();
    await grant(client);
    const first = await lookUp(client);
    expect(secondsBetween(first.claimedAt, first.expiresAt)).toBeCloseTo(72 * HOUR_S, 5);
    await timePasses(HOUR_S);
    await grant(client);
    const second = await lookUp(client);
    expect(secondsBetween(second.claimedAt, second.expiresAt)).toBeCloseTo(72 * HOUR_S, 5);
    expect(secondsBetween(second.firstClaimedAt, second.claimedAt)).toBeGreaterThanOrEqual(HOUR_S);
  });

  test("of a finished key counts from its completion", async () => {
    const { client, timePasses } = await contract.newCaller();
    const { fencingToken } = await grant(client);
    await timePasses(HOUR_S);
    await client.complete({ ...ORDER, fencingToken, result: success("done") });
    const { completedAt, expiresAt, resultExpiresAt } = await lookUp(client);
    expect(secondsBetween(completedAt, expiresAt)).toBeCloseTo(72 * HOUR_S, 5);
    expect(resultExpiresAt).toEqual(expiresAt);
  });

  test("of a result may end before its key's: completed, result gone", async () => {
    const { client, timePasses } = await contract.newCaller({ result_retention_s: HOUR_S });
    await complete(client);
    const { completedAt, expiresAt, resultExpiresAt } = await lookUp(client);
    expect(secondsBetween(completedAt, resultExpiresAt)).toBeCloseTo(HOUR_S, 5);
    expect(secondsBetween(completedAt, expiresAt)).toBeCloseTo(72 * HOUR_S, 5);
    await timePasses(HOUR_S + 1);
    const reply = await client.claim(ORDER);
    expect(reply.outcome).toMatchObject({ case: "completed", value: { resultExpired: true } });
    expect(reply.outcome.value).not.toHaveProperty("result");
    expect(reply.expiresAt).toEqual((await lookUp(client)).expiresAt);
  });

  test("of a failure may differ from a success's", async () => {
    const policy = { result_retention_s: 2 * HOUR_S, failure_retention_s: 60 };
    const { client } = await contract.newCaller(policy);
    await complete(client, failure("declined"));
    const failed = await lookUp(client);
    expect(secondsBetween(failed.completedAt, failed.resultExpiresAt)).toBeCloseTo(60, 5);
    const other = await contract.newCaller(policy);
    await complete(other.client, success("done"));
    const succeeded = await lookUp(other.client);
    expect(secondsBetween(succeeded.completedAt, succeeded.resultExpiresAt)).toBeCloseTo(2 * HOUR_S, 5);
  });

  test("is not cut short by the sweep, which visits records early that were completed late", async () => {
    const { client, timePasses, sweep } = await contract.newCaller({ result_retention_s: HOUR_S });
    const { fencingToken } = await grant(client);
    await timePasses(HOUR_S - 60);
    await client.complete({ ...ORDER, fencingToken, result: success("receipt") });
    await timePasses(HOUR_S - 60);
    await sweep();
    expect((await client.claim(ORDER)).outcome).toMatchObject({
      case: "completed",
      value: { result: success("receipt") },
    });
    await timePasses(120);
    await sweep();
    expect((await client.claim(ORDER)).outcome).toMatchObject({
      case: "completed",
      value: { resultExpired: true },
    });
    await timePasses(70 * HOUR_S);
    await sweep();
    expect((await client.claim(ORDER)).outcome.case).toBe("completed");
  });

  test("never ends before the lease does", async () => {
    const { client, timePasses, sweep } = await contract.newCaller({ key_retention_s: 60 });
    const { leaseExpiresAt } = await grant(client, { lease: seconds(600) });
    expect((await lookUp(client)).expiresAt).toEqual(leaseExpiresAt);
    await timePasses(500);
    await sweep();
    expect((await client.claim(ORDER)).outcome.case).toBe("inProgress");
  });
});

describeContractOnce("Retention on a server", (contract) => {
  test("of a claim can be requested shorter, and also shortens its result's", async () => {
    const { client } = await contract.newCaller();
    const { fencingToken } = await grant(client, { retention: seconds(120) });
    const claimed = await lookUp(client);
    expect(secondsBetween(claimed.claimedAt, claimed.expiresAt)).toBeCloseTo(120, 5);
    await client.complete({ ...ORDER, fencingToken, result: success("done") });
    const { completedAt, expiresAt, resultExpiresAt } = await lookUp(client);
    expect(secondsBetween(completedAt, expiresAt)).toBeCloseTo(120, 5);
    expect(resultExpiresAt).toEqual(expiresAt);
  });

  test("of a completion can be requested shorter, and also shortens its result's", async () => {
    const { client } = await contract.newCaller({ result_retention_s: HOUR_S });
    const { fencingToken } = await grant(client);
    const result = success("done");
    const reply = await client.complete({ ...ORDER, fencingToken, result, retention: seconds(90.5) });
    const { completedAt, expiresAt, resultExpiresAt } = await lookUp(client);
    expect(reply.expiresAt).toEqual(expiresAt);
    expect(secondsBetween(completedAt, expiresAt)).toBeCloseTo(91, 5);
    expect(resultExpiresAt).toEqual(expiresAt);
  });

  test("can't be requested longer than the policy's, or shorter than 1 min", async () => {
    const { client } = await contract.newCaller({ key_retention_s: HOUR_S });
    const { fencingToken } = await grant(client, { retention: seconds(HOUR_S) });
    const result = success("done");
    for (const retention of [seconds(HOUR_S + 0.001), seconds(59.999), seconds(0)]) {
      const invalid = { code: "InvalidArgument", reason: "INVALID_REQUEST", fields: ["retention"] };
      expect(await errorOf(client.claim({ ...ORDER, retention }))).toMatchObject(invalid);
      const completing = client.complete({ ...ORDER, fencingToken, result, retention });
      expect(await errorOf(completing)).toMatchObject(invalid);
    }
    await client.complete({ ...ORDER, fencingToken, result, retention: seconds(60) });
  });
});
