import { randomBytes } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import type { ClaimRequestSchema } from "../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { Record_State } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import type { IdempotencyClient } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { complete, failure, grant, lookUp, ORDER, seconds, success } from "../support/calls/verbs.ts";
import { countRows, forgetRecords, secondsBetween, sweep } from "../support/database/time.ts";
import { type Caller, type Contract, describeContractOnce } from "../support/servers/contract.ts";

const HOUR_S = 3600;
const REFUSE = { late_keys: "REFUSE", key_retention_s: HOUR_S };
const REQUIRE_TIME = { late_keys: "REQUIRE_TIME", key_retention_s: HOUR_S };
const TOO_OLD = { code: "FailedPrecondition", reason: "KEY_TOO_OLD", retryable: false };

/** Returns the field of a key that was created so many seconds ago. */
function created(agoS: number) {
  return { keyCreatedAt: timestampFromMs(Date.now() - agoS * 1000) };
}

/** Claims ORDER with a key that was created so many seconds ago. */
function claim(
  client: IdempotencyClient,
  agoS: number,
  request: MessageInitShape<typeof ClaimRequestSchema> = {},
) {
  return client.claim({ ...ORDER, ...created(agoS), ...request });
}

async function refusalOf(client: IdempotencyClient, agoS: number) {
  return await errorOf(claim(client, agoS));
}

describeContractOnce("A key that is older than its retention", (contract) => {
  test("is granted with RUN, which is the default", async () => {
    const { client } = await contract.newCaller({ key_retention_s: HOUR_S });
    await grant(client, created(HOUR_S + 1));
    await grant(client, { key: uuidV7At(0) });
    await grant(client, { ...created(-HOUR_S), key: "ahead" });
  });

  test("is refused with REFUSE, and nothing is stored", async () => {
    const { client, tenant } = await contract.newCaller(REFUSE);
    const { keyCreatedAt } = created(HOUR_S + 1);
    const createdAtMs = timestampMs(keyCreatedAt);
    expect(await errorOf(client.claim({ ...ORDER, keyCreatedAt }))).toMatchObject({
      ...TOO_OLD,
      metadata: {
        key_created_at: new Date(createdAtMs).toISOString(),
        accepted_until: new Date(createdAtMs + HOUR_S * 1000).toISOString(),
      },
    });
    expect(await countRows(contract.database, tenant)).toBe(0);
    await grant(client, created(HOUR_S - 30));
  });

  test("is refused by what the key says, unless the request says another time", async () => {
    const { client } = await contract.newCaller(REQUIRE_TIME);
    const agoMs = Date.now() - (HOUR_S + 1) * 1000;
    for (const key of [uuidV7At(agoMs), ulidAt(agoMs)]) {
      expect(await errorOf(client.claim({ ...ORDER, key }))).toMatchObject(TOO_OLD);
      await grant(client, { ...created(0), key });
    }
    for (const key of [uuidV7At(Date.now()), ulidAt(Date.now())]) await grant(client, { key });
    const young = uuidV7At(Date.now());
    expect(await errorOf(claim(client, HOUR_S + 1, { key: young }))).toMatchObject(TOO_OLD);
  });

  test("is granted with REFUSE and refused with REQUIRE_TIME if nothing says when it was created", async () => {
    const refusing = await contract.newCaller(REFUSE);
    await grant(refusing.client);
    const requiring = await contract.newCaller(REQUIRE_TIME);
    expect(await errorOf(requiring.client.claim(ORDER))).toMatchObject({
      reason: "INVALID_REQUEST",
      fields: ["key_created_at"],
    });
  });

  test("is refused in a batch alone, and each of its items by its own time", async () => {
    const { client } = await contract.newCaller(REFUSE);
    const item = (key: string, agoS: number) => ({
      request: { case: "claim" as const, value: { ...ORDER, ...created(agoS), key } },
    });
    const { items } = await client.batch({
      items: [
        item("old", HOUR_S + 1),
        item("young", 0),
        item("old", 0),
        item("old", HOUR_S + 1),
        item("new", 1),
      ],
    });
    expect(items.map(({ response }) => outcomeOf(response))).toEqual([
      "KEY_TOO_OLD",
      "claimed",
      "claimed",
      "inProgress",
      "claimed",
    ]);
  });
});

const KEY_TOO_OLD = 38;

function outcomeOf(response: { readonly case?: string | undefined; readonly value?: unknown }): unknown {
  if (response.case === "claim") return (response.value as { outcome: { case: string } }).outcome.case;
  const { reason } = response.value as { reason: number };
  return reason === KEY_TOO_OLD ? "KEY_TOO_OLD" : reason;
}

describeContractOnce("A key from the future", (contract) => {
  test("is refused if it is more than 5 min ahead", async () => {
    const { client } = await contract.newCaller(REFUSE);
    const invalid = { reason: "INVALID_REQUEST" };
    expect(await refusalOf(client, -310)).toMatchObject({ ...invalid, fields: ["key_created_at"] });
    const key = uuidV7At(Date.now() + 310_000);
    expect(await errorOf(client.claim({ ...ORDER, key }))).toMatchObject({ ...invalid, fields: ["key"] });
    await grant(client, created(-290));
  });
});

describeContractOnce("A record that is alive answers an old key:", (contract) => {
  test("in progress, and the same claim again", async () => {
    const { client } = await contract.newCaller(REFUSE);
    const { fencingToken } = await grant(client, { ...created(0), claimId: "call-1" });
    expect((await claim(client, HOUR_S + 1)).outcome.case).toBe("inProgress");
    const repeated = await claim(client, HOUR_S + 1, { claimId: "call-1" });
    expect(repeated.outcome).toMatchObject({ case: "claimed", value: { fencingToken, attempt: 1 } });
  });

  test("completed", async () => {
    const { client } = await contract.newCaller(REFUSE);
    await complete(client);
    expect((await claim(client, HOUR_S + 1)).outcome).toMatchObject({
      case: "completed",
      value: { result: success("done") },
    });
  });

  test("taken over after a release and after a lease", async () => {
    const { client, timePasses } = await contract.newCaller(REFUSE);
    const first = await grant(client, created(0));
    await client.release({ ...ORDER, fencingToken: first.fencingToken });
    const second = await grant(client, created(HOUR_S + 1));
    expect(second.attempt).toBe(2);
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
    await timePasses(31);
    expect(await grant(client, created(HOUR_S + 32))).toMatchObject({ attempt: 3 });
  });

  test("ambiguous, and taken over by who accepts that", async () => {
    const { client, timePasses } = await contract.newCaller({ ...REFUSE, on_lease_expiry: "HOLD" });
    await grant(client, created(0));
    await timePasses(31);
    expect((await claim(client, HOUR_S + 1)).outcome.case).toBe("ambiguous");
    expect(await grant(client, { ...created(HOUR_S + 1), acceptAmbiguous: true })).toMatchObject({
      attempt: 2,
    });
  });
});

describeContractOnce("A record outlasts its key's youth:", (contract) => {
  test("it is kept for 10 min longer than the key's retention, from its claim and its completion", async () => {
    const { client } = await contract.newCaller(REFUSE);
    const { fencingToken } = await grant(client, created(0));
    const claimed = await lookUp(client);
    expect(secondsBetween(claimed.claimedAt, claimed.expiresAt)).toBeCloseTo(HOUR_S + 600, 5);
    await client.complete({ ...ORDER, fencingToken, result: failure("declined") });
    const completed = await lookUp(client);
    expect(secondsBetween(completed.completedAt, completed.expiresAt)).toBeCloseTo(HOUR_S + 600, 5);
    expect(completed.resultExpiresAt).toEqual(completed.expiresAt);
  });

  test("a request cannot shorten it", async () => {
    const { client } = await contract.newCaller(REFUSE);
    const { fencingToken } = await grant(client, { ...created(0), retention: seconds(60) });
    const claimed = await lookUp(client);
    expect(secondsBetween(claimed.claimedAt, claimed.expiresAt)).toBeCloseTo(HOUR_S + 600, 5);
    const result = success("done");
    await client.complete({ ...ORDER, fencingToken, result, retention: seconds(60) });
    const completed = await lookUp(client);
    expect(secondsBetween(completed.completedAt, completed.expiresAt)).toBeCloseTo(HOUR_S + 600, 5);
  });

  test("the retention of a failure ends before the key's, and does not free the key", async () => {
    const { client, timePasses } = await contract.newCaller({ ...REFUSE, failure_retention_s: 60 });
    await complete(client, failure("declined"));
    await timePasses(HOUR_S);
    expect((await claim(client, HOUR_S)).outcome).toMatchObject({
      case: "completed",
      value: { resultExpired: true },
    });
  });
});

describeContractOnce("A key whose record has ended", (contract) => {
  const result = success("done");
  const endings: readonly (readonly [string, (caller: Caller, fencingToken: bigint) => Promise<unknown>])[] =
    [
      ["completed", ({ client }, fencingToken) => client.complete({ ...ORDER, fencingToken, result })],
      ["released", ({ client }, fencingToken) => client.release({ ...ORDER, fencingToken })],
      ["left in progress", () => Promise.resolve()],
    ];

  /** Claims ORDER, whose key is created at that moment, ends the claim, and lets retention end. */
  async function endedCaller(end: (typeof endings)[number][1]): Promise<Caller> {
    const caller = await contract.newCaller(REQUIRE_TIME);
    const { fencingToken } = await grant(caller.client, created(0));
    await end(caller, fencingToken);
    await caller.timePasses(HOUR_S + 601);
    return caller;
  }

  test.each(endings)("is refused before and after the sweep: %s", async (_, end) => {
    const { client, tenant, timePasses } = await endedCaller(end);
    expect(await refusalOf(client, HOUR_S + 601)).toMatchObject(TOO_OLD);
    expect(await countRows(contract.database, tenant)).toBe(1);
    await timePasses(300);
    await sweep(contract.database);
    expect(await countRows(contract.database, tenant)).toBe(0);
    expect(await refusalOf(client, HOUR_S + 901)).toMatchObject(TOO_OLD);
  });

  test.each(endings)("is granted for another operation, which has its own time: %s", async (_, end) => {
    const { client } = await endedCaller(end);
    expect(await grant(client, created(0))).toMatchObject({ attempt: 1 });
  });
});

describeContractOnce("A forgotten key", (contract) => {
  test("is granted again while it is young: the administrator's exception", async () => {
    const { client, tenant } = await contract.newCaller(REQUIRE_TIME);
    await grant(client, created(10));
    await forgetRecords(contract.database, tenant);
    expect(await grant(client, created(10))).toMatchObject({ attempt: 1 });
  });

  test("is refused once it is too old", async () => {
    const { client, tenant } = await contract.newCaller(REQUIRE_TIME);
    await grant(client, created(10));
    await forgetRecords(contract.database, tenant);
    expect(await refusalOf(client, HOUR_S + 1)).toMatchObject(TOO_OLD);
    expect((await client.lookup(ORDER)).record).toBeUndefined();
  });

  test("is granted however old it is if its record was resolved as released", async () => {
    const { client, tenant } = await contract.newCaller({ ...REQUIRE_TIME, on_lease_expiry: "HOLD" });
    await grant(client, created(10));
    await contract.database.query(
      "update records set state = 3, settled_at = now(), release_reason = '' where tenant_id = $1",
      [tenant.id],
    );
    expect((await lookUp(client)).state).toBe(Record_State.RELEASED);
    expect(await grant(client, created(HOUR_S + 1))).toMatchObject({ attempt: 2 });
  });
});

describeContractOnce("After key_retention was lengthened", (contract) => {
  /** A policy whose retention was an hour until so many seconds ago. */
  async function lengthened(contract: Contract, agoS: number): Promise<Caller> {
    return await contract.newCaller({
      late_keys: "REQUIRE_TIME",
      key_retention_s: 24 * HOUR_S,
      retention_lengthened_at: new Date(Date.now() - agoS * 1000).toISOString(),
      retention_before_s: HOUR_S,
    });
  }

  test("keys from before keep the earlier limit", async () => {
    const { client } = await lengthened(contract, 2 * HOUR_S);
    expect(await refusalOf(client, 2 * HOUR_S)).toMatchObject(TOO_OLD);
    expect(await refusalOf(client, 2 * HOUR_S - 590)).toMatchObject(TOO_OLD);
    await grant(client, created(2 * HOUR_S - 610));
  });

  test("keys that are young by the earlier limit are granted", async () => {
    const { client } = await lengthened(contract, 60);
    await grant(client, created(HOUR_S - 30));
  });
});

/** Returns a new UUID of version 7 that was created at a time, in milliseconds since the Unix epoch. */
function uuidV7At(createdAtMs: number): string {
  const time = Math.floor(createdAtMs).toString(16).padStart(12, "0");
  const random = randomBytes(10).toString("hex");
  return [
    time.slice(0, 8),
    time.slice(8),
    `7${random.slice(0, 3)}`,
    `8${random.slice(3, 6)}`,
    random.slice(6, 18),
  ].join("-");
}

const DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** Returns a new ULID that was created at a time, in milliseconds since the Unix epoch. */
function ulidAt(createdAtMs: number): string {
  let time = "";
  for (let rest = Math.floor(createdAtMs); time.length < 10; rest = Math.floor(rest / 32)) {
    time = DIGITS.charAt(rest % 32) + time;
  }
  return time + Array.from(randomBytes(16), (byte) => DIGITS.charAt(byte % 32)).join("");
}
