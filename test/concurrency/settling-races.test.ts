import { beforeAll, expect, test } from "vitest";
import { Result_Kind } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import type { IdempotencyClient } from "../support/calls/clients.ts";
import { connectCrowd } from "../support/calls/crowd.ts";
import { describeError } from "../support/calls/errors.ts";
import { endLeases, granted, grantsAmong } from "../support/calls/records.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { useServerOn } from "../support/servers/use-server.ts";
import { useStarted } from "../support/use-started.ts";

const ROUNDS = 25;

const database = useDatabase();
const servers = [useServerOn(database), useServerOn(database)];
const tenant = useStarted(() => createTenant(database));
let holder: IdempotencyClient;
let others: IdempotencyClient[];

beforeAll(async () => {
  const crowd = await connectCrowd(servers, tenant.apiKey, 9);
  [holder, ...others] = crowd as [IdempotencyClient, ...IdempotencyClient[]];
});

/** Returns the answer of a call, or the reason of its refusal. */
async function reasonOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => "OK",
    (error: unknown) => describeError(error).reason ?? "none",
  );
}

function resultOf(text: string) {
  return { kind: Result_Kind.SUCCESS, payload: Buffer.from(text) };
}

test("a complete that races a take-over either succeeds or is refused as superseded", async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const id = { namespace: "charges", key: `takeover-${round}` };
    const { fencingToken } = granted(await holder.claim(id));
    await endLeases(database, tenant, id.key);
    const [completed, ...replies] = await Promise.all([
      reasonOf(holder.complete({ ...id, fencingToken, result: resultOf("first") })),
      ...others.map((client) => client.claim(id)),
    ]);
    const grants = grantsAmong(replies);
    expect([completed, grants.length]).toBeOneOf([
      ["OK", 0],
      ["CLAIM_SUPERSEDED", 1],
    ]);
    const { record } = await holder.lookup(id);
    expect(record?.fencingToken).toBe(grants[0]?.fencingToken ?? fencingToken);
    expect(record?.result === undefined).toBe(completed !== "OK");
  }
});

test("of claims that race a release at most one is granted, and the key is not lost", async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const id = { namespace: "charges", key: `release-${round}` };
    const { fencingToken } = granted(await holder.claim(id));
    const [released, ...replies] = await Promise.all([
      reasonOf(holder.release({ ...id, fencingToken })),
      ...others.map((client) => client.claim(id)),
    ]);
    expect(released).toBeOneOf(["OK", "CLAIM_SUPERSEDED"]);
    const grants = grantsAmong(replies);
    expect(grants.length).toBeLessThanOrEqual(1);
    for (const grant of grants) expect(grant.fencingToken).toBeGreaterThan(fencingToken);
    if (grants.length === 0) granted(await holder.claim(id));
  }
});

test("of two completes of one claim with different results, one is refused", async () => {
  const [rival] = others as [IdempotencyClient];
  for (let round = 0; round < ROUNDS; round++) {
    const id = { namespace: "charges", key: `results-${round}` };
    const { fencingToken } = granted(await holder.claim(id));
    const outcomes = await Promise.all([
      reasonOf(holder.complete({ ...id, fencingToken, result: resultOf("one") })),
      reasonOf(rival.complete({ ...id, fencingToken, result: resultOf("two") })),
    ]);
    expect(outcomes.toSorted()).toEqual(["ALREADY_COMPLETED", "OK"]);
    const { record } = await holder.lookup(id);
    expect(Buffer.from(record?.result?.payload ?? []).toString()).toBe(outcomes[0] === "OK" ? "one" : "two");
  }
});

test("of a complete and a release of one claim, one succeeds and the other is refused", async () => {
  const [rival] = others as [IdempotencyClient];
  for (let round = 0; round < ROUNDS; round++) {
    const id = { namespace: "charges", key: `settling-${round}` };
    const { fencingToken } = granted(await holder.claim(id));
    const outcomes = await Promise.all([
      reasonOf(holder.complete({ ...id, fencingToken, result: resultOf("one") })),
      reasonOf(rival.release({ ...id, fencingToken })),
    ]);
    expect(outcomes).toBeOneOf([
      ["OK", "ALREADY_COMPLETED"],
      ["ALREADY_RELEASED", "OK"],
    ]);
  }
});
