import { expect, test } from "vitest";
import { complete, grant, ORDER } from "../support/calls/verbs.ts";
import { countRows, forgetRecords, sweep } from "../support/database/time.ts";
import { describeContractOnce } from "../support/servers/contract.ts";
import { describeSharedContractOnce } from "../support/servers/shared-contract.ts";

const PAST_KEY_RETENTION_S = 73 * 3600;

describeSharedContractOnce("The fencing tokens of a key strictly increase", (contract) => {
  test("across the end of an unfinished key's retention", async () => {
    const { client, timePasses } = await contract.newCaller();
    const first = await grant(client);
    await timePasses(PAST_KEY_RETENTION_S);
    const second = await grant(client);
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
    expect(second.attempt).toBe(1);
    expect(second.firstClaimedAt?.seconds).toBeGreaterThanOrEqual(first.firstClaimedAt?.seconds ?? 0n);
  });

  test("across the end of a completed key's retention", async () => {
    const { client, timePasses } = await contract.newCaller();
    const first = await complete(client);
    await timePasses(PAST_KEY_RETENTION_S);
    const second = await grant(client);
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
    expect(second.attempt).toBe(1);
  });
});

describeContractOnce("On a server the fencing tokens of a key strictly increase", (contract) => {
  test("across the sweep", async () => {
    const { client, tenant, timePasses } = await contract.newCaller();
    const first = await complete(client);
    await timePasses(PAST_KEY_RETENTION_S);
    await sweep(contract.database);
    expect(await countRows(contract.database, tenant)).toBe(0);
    const second = await grant(client);
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
    expect(second.attempt).toBe(1);
  });

  test("across being forgotten", async () => {
    const { client, tenant } = await contract.newCaller();
    const first = await complete(client);
    await forgetRecords(contract.database, tenant);
    expect((await client.lookup(ORDER)).record).toBeUndefined();
    const second = await grant(client);
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
    expect(second.attempt).toBe(1);
  });

  test("even if the granted token is ahead of the clock", async () => {
    const { client, tenant } = await contract.newCaller();
    const first = await grant(client);
    // Like after a statement that drew its token later than another one, and claimed the key earlier.
    const ahead = first.fencingToken + 1_000_000n;
    await contract.database.query("update records set fencing_token = $2, state = 3 where tenant_id = $1", [
      tenant.id,
      String(ahead),
    ]);
    await contract.database.query("update records set settled_at = now() where tenant_id = $1", [tenant.id]);
    const second = await grant(client);
    expect(second.fencingToken).toBeGreaterThan(ahead);
  });
});
