import { expect, test } from "vitest";
import { connectClient } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { fingerprintOf, grant, lookUp, ORDER, seconds, success } from "../support/calls/verbs.ts";
import { secondsBetween } from "../support/database/time.ts";
import { describeContractOnce } from "../support/servers/contract.ts";
import { describeSharedContractOnce } from "../support/servers/shared-contract.ts";

describeSharedContractOnce("Policy", (contract) => {
  test("is the service's default where nothing is set", async () => {
    const { client } = await contract.newCaller();
    const { fencingToken } = await grant(client);
    const { claimedAt, leaseExpiresAt, expiresAt } = await lookUp(client);
    expect(secondsBetween(claimedAt, leaseExpiresAt)).toBeCloseTo(30, 5);
    expect(secondsBetween(claimedAt, expiresAt)).toBeCloseTo(72 * 3600, 5);
    await grant(client, { key: "longest lease", lease: seconds(15 * 60) });
    const tooLong = client.claim({ ...ORDER, key: "longer", lease: seconds(15 * 60 + 0.001) });
    expect(await errorOf(tooLong)).toMatchObject({ reason: "INVALID_REQUEST", fields: ["lease"] });
    const largest = { ...success(""), payload: new Uint8Array(64 * 1024) };
    await client.complete({ ...ORDER, fencingToken, result: largest });
  });

  test("of a tenant applies to every namespace that was not declared", async () => {
    const { client } = await contract.newCaller({ default_lease_ms: 5000, key_retention_s: 3600 });
    await grant(client, { namespace: "never-declared" });
    const { record } = await client.lookup({ ...ORDER, namespace: "never-declared" });
    expect(secondsBetween(record?.claimedAt, record?.leaseExpiresAt)).toBeCloseTo(5, 5);
    expect(secondsBetween(record?.claimedAt, record?.expiresAt)).toBeCloseTo(3600, 5);
  });

  test("of a namespace overrides the tenant's, and inherits its unset fields", async () => {
    const { client } = await contract.newCaller(
      { default_lease_ms: 5000, key_retention_s: 3600 },
      { charges: { default_lease_ms: 9000 } },
    );
    await grant(client);
    const { claimedAt, leaseExpiresAt, expiresAt } = await lookUp(client);
    expect(secondsBetween(claimedAt, leaseExpiresAt)).toBeCloseTo(9, 5);
    expect(secondsBetween(claimedAt, expiresAt)).toBeCloseTo(3600, 5);
  });

  test("of a namespace does not apply to another tenant's namespace of the same name", async () => {
    const mine = await contract.newCaller();
    const theirs = await contract.newCaller({}, { charges: { max_lease_ms: 2000 } });
    await grant(mine.client, { lease: seconds(60) });
    const refused = theirs.client.claim({ ...ORDER, lease: seconds(60) });
    expect(await errorOf(refused)).toMatchObject({ fields: ["lease"] });
  });

  test("require_fingerprint refuses a claim without one", async () => {
    const { client } = await contract.newCaller({ require_fingerprint: true });
    expect(await errorOf(client.claim(ORDER))).toMatchObject({
      code: "InvalidArgument",
      reason: "INVALID_REQUEST",
      fields: ["fingerprint"],
    });
    await grant(client, { fingerprint: fingerprintOf("charge 10 EUR") });
  });

  test("max_lease limits an extension and a claim alike", async () => {
    const { client } = await contract.newCaller({ max_lease_ms: 60_000 });
    const { fencingToken } = await grant(client, { lease: seconds(60) });
    const lease = seconds(60.001);
    const invalid = { reason: "INVALID_REQUEST", fields: ["lease"] };
    expect(await errorOf(client.claim({ ...ORDER, lease }))).toMatchObject(invalid);
    expect(await errorOf(client.extendLease({ ...ORDER, fencingToken, lease }))).toMatchObject(invalid);
    await client.extendLease({ ...ORDER, fencingToken, lease: seconds(1) });
  });
});

describeContractOnce("A policy that is changed", (contract) => {
  test("decides about leases of later claims: the newest claim's reclaim_within applies", async () => {
    const { client, tenant, timePasses } = await contract.newCaller({ reclaim_within_s: 120 });
    await grant(client);
    await contract.database.query("update tenants set reclaim_within_s = null where id = $1", [tenant.id]);
    const fresh = connectClient(await contract.newReplica(), tenant.apiKey, contract.transport);
    await timePasses(60);
    await grant(fresh);
    await timePasses(90);
    expect(await grant(fresh)).toMatchObject({ attempt: 3 });
  });

  test("applies on a server that has not cached the tenant", async () => {
    const { client, tenant } = await contract.newCaller();
    await grant(client, { key: "before" });
    await contract.database.query("update tenants set max_result_bytes = 3 where id = $1", [tenant.id]);
    const fresh = connectClient(await contract.newReplica(), tenant.apiKey, contract.transport);
    const { fencingToken } = await grant(fresh);
    const error = await errorOf(fresh.complete({ ...ORDER, fencingToken, result: success("four") }));
    expect(error).toMatchObject({ reason: "RESULT_TOO_LARGE" });
  });

  test("does not apply to records that were claimed before", async () => {
    const { client, tenant, timePasses } = await contract.newCaller({ on_lease_expiry: "HOLD" });
    const { fencingToken } = await grant(client);
    await contract.database.query(
      `update tenants
          set on_lease_expiry = 'RECLAIM', key_retention_s = 600, result_retention_s = 60
        where id = $1`,
      [tenant.id],
    );
    const fresh = connectClient(await contract.newReplica(), tenant.apiKey, contract.transport);
    await timePasses(31);
    expect((await fresh.claim(ORDER)).outcome.case).toBe("ambiguous");
    await fresh.complete({ ...ORDER, fencingToken, result: success("done") });
    const { completedAt, expiresAt, resultExpiresAt } = await lookUp(client);
    expect(secondsBetween(completedAt, expiresAt)).toBeCloseTo(72 * 3600, 5);
    expect(resultExpiresAt).toEqual(expiresAt);
  });
});
