import type { MessageInitShape } from "@bufbuild/protobuf";
import { expect, onTestFinished, test } from "vitest";
import { Record_State } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import type { ResolveAmbiguousRecordsRequestSchema } from "../../clients/typescript/src/gen/onceward/v1/tenant_admin_pb.ts";
import {
  type RecordJob,
  RecordJob_Kind,
  RecordJob_State,
} from "../../clients/typescript/src/gen/onceward/v1/tenant_pb.ts";
import { type AdministeredTenant, createWorld, describeAdministration } from "../support/calls/admin.ts";
import { describeError, errorOf } from "../support/calls/errors.ts";
import { endLeases } from "../support/calls/records.ts";
import { completeWith, FORGET, RELEASE } from "../support/calls/resolutions.ts";
import { bytes, grant, ORDER, seconds, success } from "../support/calls/verbs.ts";
import { createDatabaseOfTest } from "../support/database/database.ts";
import { startTestServer } from "../support/servers/server.ts";
import { untilWaiting } from "../support/servers/waiters.ts";

type Request = MessageInitShape<typeof ResolveAmbiguousRecordsRequestSchema>;

const PATIENCE = { timeout: 60_000, interval: 20 };
const HOLD = { on_lease_expiry: "HOLD" };

const STATE_NAMES = new Map<Record_State, string>(
  Object.entries(Record_State).map(([name, value]) => [value, name]),
);

async function resolveAll({ admin }: AdministeredTenant, request: Request): Promise<RecordJob> {
  const { job } = await admin.resolveAmbiguousRecords({ reason: "found out", ...request });
  return await finished(admin, job?.id ?? 0n);
}

async function finished({ getRecordJob }: AdministeredTenant["admin"], id: bigint): Promise<RecordJob> {
  let job: RecordJob | undefined;
  await expect
    .poll(async () => {
      ({ job } = await getRecordJob({ id }));
      return job?.state;
    }, PATIENCE)
    .toBe(RecordJob_State.DONE);
  return job as RecordJob;
}

describeAdministration("ResolveAmbiguousRecords", (world) => {
  async function ambiguous(
    { caller, tenant }: AdministeredTenant,
    {
      keys,
      namespace = "charges",
      owner = "",
    }: { keys: readonly string[]; namespace?: string; owner?: string },
  ): Promise<ReadonlyMap<string, bigint>> {
    const claims = await Promise.all(keys.map((key) => grant(caller, { namespace, key, owner })));
    await endLeases(world().database, tenant);
    return new Map(claims.map(({ fencingToken }, index) => [keys[index] ?? "", fencingToken]));
  }

  const states = async ({ admin }: AdministeredTenant) =>
    Object.fromEntries(
      (await admin.listRecords({})).records.map(({ key, state }) => [key, STATE_NAMES.get(state)]),
    );

  const preview = async ({ admin }: AdministeredTenant, request: Request = {}) => {
    const reply = await admin.resolveAmbiguousRecords({
      reason: "found out",
      resolution: RELEASE,
      validateOnly: true,
      ...request,
    });
    expect(reply.job).toBeUndefined();
    expect(reply.isLowerBound).toBe(false);
    const { namespace = "", owner = "", checkpoint = "", leaseExpiredBefore: before } = request;
    const filter = { namespace, owner, checkpoint, ...(before && { leaseExpiredBefore: before }) };
    const counted = { ambiguous: reply.matching, isLowerBound: false };
    expect(await admin.countAmbiguousRecords(filter)).toMatchObject(counted);
    return Number(reply.matching);
  };

  test("with validate_only counts the records that each filter matches, and changes nothing", async () => {
    const one = await world().administeredTenant(HOLD);
    const tokens = await ambiguous(one, { keys: ["a", "b"], owner: "worker-1" });
    await ambiguous(one, { keys: ["c"], namespace: "payouts", owner: "worker-2" });
    await grant(one.caller, { key: "held" });
    await ambiguous(await world().administeredTenant(HOLD), { keys: ["another tenant's"] });
    const before = await states(one);
    const checkpoint = { name: "charged", state: bytes("") };
    await one.caller.extendLease({
      namespace: "charges",
      key: "a",
      fencingToken: tokens.get("a") ?? 0n,
      checkpoint,
    });
    await endLeases(world().database, one.tenant, "a");
    const hourAgo = { seconds: BigInt(Math.floor(Date.now() / 1000) - 3600), nanos: 0 };
    const inAnHour = { seconds: hourAgo.seconds + 7200n, nanos: 0 };
    expect(await preview(one)).toBe(3);
    expect(await preview(one, { namespace: "charges" })).toBe(2);
    expect(await preview(one, { namespace: "refunds" })).toBe(0);
    expect(await preview(one, { owner: "worker-2" })).toBe(1);
    expect(await preview(one, { owner: "worker" })).toBe(0);
    expect(await preview(one, { checkpoint: "charged" })).toBe(1);
    expect(await preview(one, { leaseExpiredBefore: hourAgo })).toBe(0);
    expect(await preview(one, { leaseExpiredBefore: inAnHour })).toBe(3);
    expect(await states(one)).toEqual(before);
    expect((await one.admin.listRecordJobs({})).jobs).toEqual([]);
    expect((await one.admin.listAuditEvents({ action: "ResolveAmbiguousRecords" })).events).toEqual([]);
  });

  test("is refused with the actual count unless exactly the expected number matches", async () => {
    const one = await world().administeredTenant(HOLD);
    await ambiguous(one, { keys: ["a", "b"] });
    for (const expectedCount of [0n, 1n, 3n]) {
      const call = one.admin.resolveAmbiguousRecords({ reason: "x", resolution: RELEASE, expectedCount });
      expect(await errorOf(call)).toMatchObject({
        code: "FailedPrecondition",
        reason: "RECORD_COUNT_MISMATCH",
        metadata: { expected_count: `${expectedCount}`, actual_count: "2", is_lower_bound: "false" },
      });
    }
    expect((await one.admin.listRecordJobs({})).jobs).toEqual([]);
    expect(await states(one)).toEqual({ a: "AMBIGUOUS", b: "AMBIGUOUS" });
  });

  test("names every malformed field", async () => {
    const { admin } = await world().administeredTenant();
    const long = "x".repeat(129);
    const calls: [Request, string[]][] = [
      [{}, ["reason", "expected_count", "resolution"]],
      [
        {
          namespace: "A",
          owner: long,
          checkpoint: long,
          reason: "x",
          resolution: RELEASE,
          expectedCount: -1n,
        },
        ["namespace", "owner", "checkpoint", "expected_count"],
      ],
      [{ reason: "x", validateOnly: true, resolution: { case: "complete", value: {} } }, ["complete.result"]],
    ];
    for (const [request, fields] of calls) {
      expect(await errorOf(admin.resolveAmbiguousRecords(request))).toMatchObject({
        reason: "INVALID_REQUEST",
        fields,
      });
    }
    expect(await errorOf(admin.countAmbiguousRecords({ namespace: "A" }))).toMatchObject({
      ...{ reason: "INVALID_REQUEST", fields: ["namespace"] },
    });
    const tooLarge = completeWith("x".repeat(64 * 1024 + 1));
    expect(
      await errorOf(admin.resolveAmbiguousRecords({ reason: "x", resolution: tooLarge, expectedCount: 0n })),
    ).toMatchObject({ reason: "RESULT_TOO_LARGE" });
  });

  test("release gives each matching key to its next claim, and leaves the others as they are", async () => {
    const one = await world().administeredTenant(HOLD);
    const keys = Array.from({ length: 230 }, (_, n) => `order-${n}`);
    await ambiguous(one, { keys, owner: "dead" });
    await ambiguous(one, { keys: ["other"], owner: "alive" });
    await ambiguous(one, { keys: ["payout"], namespace: "payouts", owner: "dead" });
    const job = await resolveAll(one, { owner: "dead", resolution: RELEASE, expectedCount: 231n });
    expect(job).toMatchObject({
      kind: RecordJob_Kind.RESOLVE,
      namespace: "",
      recordsMatching: 231n,
      recordsExamined: 231n,
      recordsChanged: 231n,
      recordsForgotten: 0n,
      recordsLeftAlone: 0n,
    });
    const [counts] = await world().database.query(
      `select count(*) filter (where state = 3)::int as released, count(*) filter (where state = 1)::int as others
         from records where tenant_id = $1`,
      [one.tenant.id],
    );
    expect(counts).toEqual({ released: 231, others: 1 });
    expect((await grant(one.caller, { key: "order-7" })).attempt).toBe(2);
    const { record, attempts } = await one.admin.getRecord({ namespace: "charges", key: "order-8" });
    expect(record).toMatchObject({ state: Record_State.RELEASED, releaseReason: "found out" });
    expect(attempts).toMatchObject([{ ending: 5, reason: "found out", owner: "dead", recordJob: job.id }]);

    // The records that the job resolved: also the one that was claimed again, and none that another job or call resolved.
    await one.admin.resolveRecord({
      ...{ namespace: "charges", key: "other", reason: "by phone" },
      resolution: RELEASE,
    });
    const listed = async (filter: { namespace?: string; state?: Record_State; recordJob: bigint }) =>
      (await one.admin.listRecords({ ...filter, pageSize: 1000 })).records.map(({ key }) => key);
    expect(await listed({ recordJob: job.id })).toEqual([...keys].sort().concat("payout"));
    expect(await listed({ recordJob: job.id, namespace: "payouts" })).toEqual(["payout"]);
    expect(await listed({ recordJob: job.id, state: Record_State.IN_PROGRESS })).toEqual(["order-7"]);
    expect(await listed({ recordJob: job.id + 1n })).toEqual([]);
    const single = await one.admin.getRecord({ namespace: "charges", key: "other" });
    expect(single.attempts).toMatchObject([{ ending: 5, recordJob: 0n }]);
  });

  test("complete stores one result for all, which is replayed and which their holders see", async () => {
    const one = await world().administeredTenant(HOLD);
    const tokens = await ambiguous(one, { keys: ["a", "b", "c"] });
    const result = { ...success("found"), contentType: "text/plain", metadata: { status: "201" } };
    const resolution = { case: "complete", value: { result } } as const;
    await resolveAll(one, { namespace: "charges", resolution, expectedCount: 3n });
    for (const [key, fencingToken] of tokens) {
      expect((await one.caller.claim({ namespace: "charges", key })).outcome).toMatchObject({
        case: "completed",
        value: { result },
      });
      const late = await one.caller.complete({ namespace: "charges", key, fencingToken, result });
      expect(late.alreadyCompleted).toBe(true);
    }
    const [row] = await world().database.query("select resolution from record_jobs where tenant_id = $1", [
      one.tenant.id,
    ]);
    expect(row).toEqual({ resolution: null });
  });

  test("forget makes the keys as if they had never been claimed, and starts a new cache epoch", async () => {
    const one = await world().administeredTenant(HOLD);
    await ambiguous(one, { keys: ["a", "b"] });
    const generation = async () =>
      (
        await world().database.query<{ n: number }>(
          "select cache_generation as n from tenants where id = $1",
          [one.tenant.id],
        )
      )[0]?.n;
    const before = await generation();
    const job = await resolveAll(one, { resolution: FORGET, expectedCount: 2n });
    expect(job).toMatchObject({ recordsChanged: 2n, recordsForgotten: 2n });
    expect(await states(one)).toEqual({});
    expect(await generation()).toBeGreaterThan(before ?? 0);
    expect((await grant(one.caller, { key: "a" })).attempt).toBe(1);
  });

  test("is two audit events, at its start and at its end, with the counts", async () => {
    const one = await world().administeredTenant(HOLD);
    await ambiguous(one, { keys: ["a", "b"], owner: "dead" });
    const request = { namespace: "charges", owner: "dead", resolution: RELEASE, expectedCount: 2n };
    const { id } = await resolveAll(one, request);
    const { events } = await one.admin.listAuditEvents({});
    const same = {
      action: "ResolveAmbiguousRecords",
      target: "namespace charges",
      reason: "found out",
      actor: events[0]?.actor,
      requestId: events[0]?.requestId,
      tenant: one.tenant.name,
    };
    expect(events).toMatchObject([
      { ...same, after: { recordJob: `${id}`, recordsChanged: 2, recordsLeftAlone: 0 } },
      {
        ...same,
        after: { recordJob: `${id}`, resolution: "release", matching: 2, owner: "dead" },
      },
    ]);
    expect(events[0]?.actor).not.toBe("");
  });

  test("against holders that complete meanwhile, each record has one end, and counts agree", async () => {
    const one = await world().administeredTenant(HOLD);
    const keys = Array.from({ length: 400 }, (_, n) => `order-${String(n).padStart(3, "0")}`);
    const tokens = await ambiguous(one, { keys });
    const request = { reason: "found out", resolution: RELEASE, expectedCount: 400n };
    const { job: started } = await one.admin.resolveAmbiguousRecords(request);
    const id = started?.id ?? 0n;
    const changed = async () => (await one.admin.getRecordJob({ id })).job?.recordsChanged;
    await expect.poll(changed, { ...PATIENCE, interval: 1 }).toBeGreaterThan(0n);
    // From the end, towards the job. A holder repeats a call that waited too long for the job's lock, as clients do.
    const complete = async (key: string, fencingToken: bigint): Promise<string> => {
      try {
        await one.caller.complete({ namespace: "charges", key, fencingToken, result: success("mine") });
        return "COMPLETED";
      } catch (error) {
        const { reason, retryable } = describeError(error);
        return retryable ? await complete(key, fencingToken) : `${reason}`;
      }
    };
    const completions = [...tokens].reverse().map(([key, token]) => complete(key, token));
    const outcomes = await Promise.all(completions);
    const { recordsChanged, recordsLeftAlone } = await finished(one.admin, id);
    const counts: Record<string, number> = {};
    for (const outcome of outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1;
    expect(counts).toEqual({
      ALREADY_RELEASED: Number(recordsChanged),
      COMPLETED: Number(recordsLeftAlone),
    });
    expect(recordsChanged + recordsLeftAlone).toBe(400n);
  });

  test("wakes the calls that wait for a record at once", async () => {
    const database = await createDatabaseOfTest();
    // No waiter polls.
    const server = await startTestServer(database.url, {}, { waiterTickMs: 3_600_000 });
    onTestFinished(() => server.stop());
    const one = await createWorld(database, server).administeredTenant(HOLD);
    await grant(one.caller);
    const waiting = one.caller.claim({ ...ORDER, wait: seconds(60) });
    await untilWaiting(server, 1);
    await endLeases(database, one.tenant);
    await resolveAll(one, { resolution: RELEASE, expectedCount: 1n });
    expect((await waiting).outcome.case).toBe("claimed");
  });
});
