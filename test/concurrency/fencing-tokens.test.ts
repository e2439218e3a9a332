import { expect, test } from "vitest";
import { connectClient, type IdempotencyClient } from "../support/calls/clients.ts";
import { connectCrowd } from "../support/calls/crowd.ts";
import { describeError } from "../support/calls/errors.ts";
import { ageRecords, endLeases, granted } from "../support/calls/records.ts";
import { bytes, success } from "../support/calls/verbs.ts";
import { lockRows, openConnection, untilBlocked } from "../support/database/connections.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { useServerOn } from "../support/servers/use-server.ts";
import { useStarted } from "../support/use-started.ts";

const database = useDatabase();
const servers = [useServerOn(database), useServerOn(database), useServerOn(database)] as const;
const tenant = useStarted(() => createTenant(database));

test("tokens rise strictly under many concurrent claims and releases on several servers", async () => {
  const id = { namespace: "charges", key: "storm" };
  const crowd = await connectCrowd(servers, tenant.apiKey, 12);
  /** In the order in which they were held: a holder adds its token before it releases the claim. */
  const tokens: bigint[] = [];
  await Promise.all(crowd.map((client) => claimAndRelease(client, id, tokens, 40)));
  expect(tokens.length).toBeGreaterThan(1);
  expect(tokens).toEqual([...new Set(tokens)].toSorted((a, b) => (a < b ? -1 : 1)));
});

async function claimAndRelease(
  client: IdempotencyClient,
  id: { readonly namespace: string; readonly key: string },
  tokens: bigint[],
  times: number,
): Promise<void> {
  for (let i = 0; i < times; i++) {
    try {
      const { outcome } = await client.claim(id);
      if (outcome.case !== "claimed") continue;
      tokens.push(outcome.value.fencingToken);
      await client.release({ ...id, fencingToken: outcome.value.fencingToken });
    } catch (error) {
      // The only refusal that is allowed: the key changed hands at every attempt.
      expect(describeError(error)).toMatchObject({ reason: "RECORD_CONTENDED", retryable: true });
    }
  }
}

test("a claim that read the clock early gets a higher token than one granted meanwhile", async () => {
  const id = { namespace: "charges", key: "slow" };
  const client = connectClient(servers[0], tenant.apiKey);
  const { fencingToken: first } = granted(await client.claim(id));
  await client.release({ ...id, fencingToken: first });

  const other = await openConnection(database);
  await lockRows(other, tenant, [id.key]);
  const slow = client.claim(id);
  await untilBlocked(database);
  // Another statement reads the clock later, is granted the key and releases it.
  const { rows } = await other.query<{ token: string }>(
    "select (date_part('epoch', clock_timestamp()) * 1000000)::bigint as token",
  );
  const token = rows[0]?.token;
  await other.query(
    "update records set fencing_token = $3, attempt = attempt + 1 where tenant_id = $1 and key = $2",
    [tenant.id, id.key, token],
  );
  await other.query("commit");

  expect(granted(await slow).fencingToken).toBeGreaterThan(BigInt(token ?? 0));
});

test("claims of every kind that share a statement are answered from their own records", async () => {
  const client = connectClient(servers[2], tenant.apiKey);
  const kinds = ["new", "released", "lapsed", "ended", "completed", "held"] as const;
  const ids = Array.from({ length: 60 }, (_, i) => {
    const kind = kinds[i % kinds.length] as (typeof kinds)[number];
    return { kind, namespace: "mixed", key: `${kind}-${i}`, fingerprint: Buffer.alloc(32, i + 1) };
  });
  const tokens = new Map<string, bigint>();
  for (const { kind, ...id } of ids) {
    if (kind === "new") continue;
    const claim = { ...id, owner: "before" };
    const { fencingToken } = granted(await client.claim(claim));
    tokens.set(id.key, fencingToken);
    await client.extendLease({ ...claim, fencingToken, checkpoint: { name: id.key } });
    if (kind === "released") await client.release({ ...id, fencingToken });
    if (kind === "completed") await client.complete({ ...id, fencingToken, result: success(id.key) });
  }
  for (const { kind, key } of ids) {
    if (kind === "lapsed") await endLeases(database, tenant, key);
    // Longer than any retention, so that the record has ended.
    if (kind === "ended") await ageRecords(database, tenant, 400 * 86_400, key);
  }

  const requests = ids.map(({ kind: _, ...id }) => ({
    case: "claim" as const,
    value: { ...id, owner: id.key },
  }));
  const { items } = await client.batch({ items: requests.map((request) => ({ request })) });
  for (const [i, { kind, key, namespace }] of ids.entries()) {
    const response = items[i]?.response;
    if (response?.case !== "claim") throw new Error(`an item was answered ${JSON.stringify(response)}`);
    const { record } = await client.lookup({ namespace, key });
    const before = tokens.get(key) ?? 0n;
    switch (kind) {
      case "new":
      case "ended":
      case "released":
      case "lapsed": {
        const goesOn = kind === "released" || kind === "lapsed";
        const claim = granted(response.value);
        expect(claim).toMatchObject({ attempt: goesOn ? 2 : 1, fencingToken: record?.fencingToken });
        expect(claim.checkpoint?.name).toBe(goesOn ? key : undefined);
        expect(claim.fencingToken).toBeGreaterThan(before);
        expect(record?.owner).toBe(key);
        break;
      }
      case "completed":
        expect(response.value.outcome).toMatchObject({
          case: "completed",
          value: { result: { payload: bytes(key) } },
        });
        break;
      case "held":
        expect(response.value.outcome).toMatchObject({ case: "inProgress", value: { owner: "before" } });
        expect(record?.fencingToken).toBe(before);
        break;
    }
  }
});
