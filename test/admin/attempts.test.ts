import { expect, test } from "vitest";
import { type Attempt, Attempt_Ending } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import { MAX_ATTEMPTS_SHOWN } from "../../server/src/records/attempt.ts";
import { type AdministeredTenant, describeAdministration } from "../support/calls/admin.ts";
import { ageRecords, endLeases } from "../support/calls/records.ts";
import { completeWith, FORGET, RELEASE, resolve } from "../support/calls/resolutions.ts";
import { bytes, complete, grant, ORDER, success } from "../support/calls/verbs.ts";
import { secondsBetween } from "../support/database/time.ts";

const ENDINGS = new Map<Attempt_Ending, string>(
  Object.entries(Attempt_Ending).map(([name, value]) => [value, name]),
);

/** Each attempt as `number owner ending`, with its reason and its checkpoint if it has them. */
async function attempts({ admin }: AdministeredTenant): Promise<readonly string[]> {
  return (await admin.getRecord(ORDER)).attempts.map(
    ({ number, owner, ending, reason, checkpoint }: Attempt) =>
      [number, owner, ENDINGS.get(ending), reason && `(${reason})`, checkpoint && `at ${checkpoint}`]
        .filter(Boolean)
        .join(" "),
  );
}

describeAdministration("the attempts of a record", (world) => {
  test("are kept to a bound over many claims that are given back, or end with their lease", async () => {
    const { caller, tenant } = await world().administeredTenant();
    await grant(caller, { owner: "first" });
    for (let round = 0; round < MAX_ATTEMPTS_SHOWN + 4; round++) {
      await endLeases(world().database, tenant);
      const { fencingToken } = await grant(caller, { owner: "looks", acceptAmbiguous: true });
      await caller.release({ ...ORDER, fencingToken, giveBack: true });
      await grant(caller, { owner: "dies", acceptAmbiguous: true });
    }
    const [row] = await world().database.query<{ kept: number }>(
      "select jsonb_array_length(past_attempts) as kept from records where tenant_id = $1",
      [tenant.id],
    );
    expect(row?.kept).toBeLessThanOrEqual(MAX_ATTEMPTS_SHOWN);
  });

  test("have the last claim that was given back after the one whose outcome is unknown", async () => {
    const one = await world().administeredTenant();
    const past = async (owner: string, reason: string) => {
      const { fencingToken } = await grant(one.caller, { owner, acceptAmbiguous: true });
      await one.caller.release({ ...ORDER, fencingToken, reason, giveBack: true });
    };
    await grant(one.caller, { owner: "a" });
    await endLeases(world().database, one.tenant);
    await past("b", "not found");
    await past("c", "still open");
    expect(await attempts(one)).toEqual(["1 a HELD", "2 c GIVEN_BACK (still open)"]);
    const { fencingToken } = await grant(one.caller, { owner: "d", acceptAmbiguous: true });
    expect(await attempts(one)).toEqual(["1 a SUPERSEDED", "2 c GIVEN_BACK (still open)", "2 d HELD"]);
    await one.caller.complete({ ...ORDER, fencingToken, result: success("done") });
    expect(await attempts(one)).toEqual(["1 a SUPERSEDED", "2 c GIVEN_BACK (still open)", "2 d SETTLED"]);
  });

  test("that were given back had tokens that no later claim gets, also after a resolution", async () => {
    const { caller, admin, tenant } = await world().administeredTenant();
    for (const [index, resolution] of [undefined, RELEASE, FORGET].entries()) {
      const record = { ...ORDER, key: `order-${index}` };
      await grant(caller, record);
      await endLeases(world().database, tenant, record.key);
      const { fencingToken } = await grant(caller, record);
      await caller.release({ ...record, fencingToken, giveBack: true });
      // As if the clock had been ahead, and no replica remembered.
      const ahead = fencingToken + BigInt(index + 1) * 10n ** 12n;
      await world().database.query(
        `update records set past_attempts = jsonb_set(past_attempts, '{-1,token}', to_jsonb($3::text))
          where tenant_id = $1 and key = $2`,
        [tenant.id, record.key, String(ahead)],
      );
      if (resolution !== undefined) await resolve(admin, resolution, record);
      expect((await grant(caller, record)).fencingToken).toBeGreaterThan(ahead);
    }
  });

  const kept = async ({ tenant }: AdministeredTenant) =>
    (
      await world().database.query<{ past: unknown[] | null; bytes: number | null }>(
        "select past_attempts as past, pg_column_size(past_attempts) as bytes from records where tenant_id = $1",
        [tenant.id],
      )
    )[0];

  async function release(one: AdministeredTenant, owner: string, reason: string): Promise<void> {
    const { fencingToken } = await grant(one.caller, { owner });
    await one.caller.release({ ...ORDER, fencingToken, reason });
  }

  test("are one for a key that was claimed once, and the row keeps nothing more", async () => {
    const one = await world().administeredTenant();
    const { fencingToken } = await grant(one.caller, { owner: "a" });
    expect(await attempts(one)).toEqual(["1 a HELD"]);
    expect((await kept(one))?.past).toBeNull();
    await one.caller.complete({ ...ORDER, fencingToken, result: success("done") });
    expect(await attempts(one)).toEqual(["1 a COMPLETED"]);
    expect((await kept(one))?.past).toBeNull();
    const {
      record,
      attempts: [only],
    } = await one.admin.getRecord(ORDER);
    expect(only).toMatchObject({ fencingToken, claimedAt: record?.claimedAt, endedAt: record?.completedAt });
  });

  test("say who lost the key when its lease had expired, when, and at which checkpoint", async () => {
    const one = await world().administeredTenant();
    const first = await grant(one.caller, { owner: `"a"\\, {x}` });
    const checkpoint = { name: "charged", state: bytes("1") };
    await one.caller.extendLease({ ...ORDER, fencingToken: first.fencingToken, checkpoint });
    await endLeases(world().database, one.tenant);
    expect(await attempts(one)).toEqual([`1 "a"\\, {x} HELD at charged`]);
    const second = await grant(one.caller, { owner: "b" });
    const next = { name: "mailed", state: bytes("2") };
    await one.caller.extendLease({ ...ORDER, fencingToken: second.fencingToken, checkpoint: next });
    expect(await attempts(one)).toEqual([`1 "a"\\, {x} SUPERSEDED at charged`, "2 b HELD at mailed"]);
    const {
      attempts: [lost, holding],
      record,
    } = await one.admin.getRecord(ORDER);
    expect(lost).toMatchObject({ fencingToken: first.fencingToken, claimedAt: record?.firstClaimedAt });
    expect(secondsBetween(lost?.endedAt, holding?.claimedAt)).toBe(0);
    expect(holding?.endedAt).toBeUndefined();
    await one.caller.complete({ ...ORDER, fencingToken: second.fencingToken, result: success("done") });
    expect((await attempts(one))[1]).toBe("2 b COMPLETED at mailed");
  });

  test("under HOLD, end when a claim that accepts ambiguity is granted", async () => {
    const one = await world().administeredTenant({ on_lease_expiry: "HOLD" });
    await grant(one.caller, { owner: "a" });
    await endLeases(world().database, one.tenant);
    await grant(one.caller, { owner: "b", acceptAmbiguous: true });
    expect(await attempts(one)).toEqual(["1 a SUPERSEDED", "2 b HELD"]);
  });

  test("say why a holder released the key, before and after the next claim", async () => {
    const one = await world().administeredTenant();
    const long = "é".repeat(200);
    await release(one, "a", long);
    const released = [`1 a RELEASED (${"é".repeat(128)})`];
    expect(await attempts(one)).toEqual(released);
    expect((await kept(one))?.past).toBeNull();
    const { record } = await one.admin.getRecord(ORDER);
    await release(one, "b", "");
    expect(await attempts(one)).toEqual([...released, "2 b RELEASED"]);
    await complete(one.caller);
    expect(await attempts(one)).toEqual([...released, "2 b RELEASED", "3 COMPLETED"]);
    expect((await one.admin.getRecord(ORDER)).attempts[0]?.endedAt).toEqual(record?.releasedAt);
  });

  test("say that an administrator resolved the record, and why", async () => {
    const one = await world().administeredTenant();
    await grant(one.caller, { owner: "a" });
    await resolve(one.admin, RELEASE, { reason: "did not happen" });
    expect(await attempts(one)).toEqual(["1 a RESOLVED (did not happen)"]);
    await release(one, "b", "gave up");
    await resolve(one.admin, completeWith("found"), { reason: "happened" });
    expect(await attempts(one)).toEqual(["1 a RESOLVED (did not happen)", "2 b RESOLVED (happened)"]);
  });

  test("of a record that was resolved twice are shown once, as the last resolution left them", async () => {
    const one = await world().administeredTenant();
    await grant(one.caller, { owner: "a" });
    await resolve(one.admin, RELEASE, { reason: "did not happen" });
    await resolve(one.admin, completeWith("found"), { reason: "happened after all" });
    expect(await attempts(one)).toEqual(["1 a RESOLVED (happened after all)"]);
  });

  test("begin again when the key is forgotten, and when its retention has ended", async () => {
    const one = await world().administeredTenant({ key_retention_s: 3600 });
    await release(one, "a", "");
    await release(one, "b", "");
    await resolve(one.admin, FORGET);
    expect((await kept(one))?.past).toBeNull();
    await grant(one.caller, { owner: "c" });
    expect(await attempts(one)).toEqual(["1 c HELD"]);
    await endLeases(world().database, one.tenant);
    await grant(one.caller, { owner: "d" });
    await ageRecords(world().database, one.tenant, 4000);
    await grant(one.caller, { owner: "e" });
    expect(await attempts(one)).toEqual(["1 e HELD"]);
  });

  test("are at most 16, however often the key is claimed, and take a bounded part of the row", async () => {
    const one = await world().administeredTenant();
    const owner = (n: number) => `${String(n).padStart(3, "0")}${"x".repeat(125)}`;
    for (let n = 1; n <= 20; n++) await release(one, owner(n), "y".repeat(1024));
    const { attempts: shown } = await one.admin.getRecord(ORDER);
    expect(shown.map(({ number }) => number)).toEqual(Array.from({ length: 16 }, (_, i) => i + 5));
    expect(shown[0]?.owner).toBe(owner(5));
    const { past, bytes: size } = (await kept(one)) ?? {};
    expect(past).toHaveLength(16);
    expect(size).toBeLessThan(16 * 1024);
    await resolve(one.admin, completeWith("found"));
    expect((await kept(one))?.past).toHaveLength(16);
    expect((await one.admin.getRecord(ORDER)).attempts.map(({ number }) => number)).toEqual(
      Array.from({ length: 16 }, (_, i) => i + 5),
    );
  });

  test("of an earlier life are left out where a server that does not know them began the new life", async () => {
    const one = await world().administeredTenant();
    await release(one, "a", "");
    await release(one, "b", "");
    await grant(one.caller, { owner: "c" });
    // As the take-over of an earlier version does after the end of the retention: it leaves the column as it is.
    await world().database.query(
      `update records set attempt = 1, fencing_token = fencing_token + 1, owner = 'd', claimed_at = now(),
         first_claimed_at = now(), lease_expires_at = now() where tenant_id = $1`,
      [one.tenant.id],
    );
    expect(await attempts(one)).toEqual(["1 d HELD"]);
    await grant(one.caller, { owner: "e" });
    expect(await attempts(one)).toEqual(["1 d SUPERSEDED", "2 e HELD"]);
  });
});
