import { expect, onTestFinished, test } from "vitest";
import { Record_State } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import { type AdministeredTenant, createWorld, describeAdministration } from "../support/calls/admin.ts";
import { errorOf } from "../support/calls/errors.ts";
import { ageRecords, endLeases } from "../support/calls/records.ts";
import { completeWith, FORGET, RELEASE, type Resolution, resolve } from "../support/calls/resolutions.ts";
import {
  bytes,
  complete,
  failure,
  fingerprintOf,
  grant,
  lookUp,
  ORDER,
  seconds,
  success,
} from "../support/calls/verbs.ts";
import { lockRows, openConnection } from "../support/database/connections.ts";
import { countRows, secondsBetween, sweep } from "../support/database/time.ts";
import { startTestServer } from "../support/servers/server.ts";
import { untilWaiting } from "../support/servers/waiters.ts";

describeAdministration("ResolveRecord", (world, transport) => {
  async function ambiguous(): Promise<AdministeredTenant & { fencingToken: bigint }> {
    const one = await world().administeredTenant({ on_lease_expiry: "HOLD" });
    const { fencingToken } = await grant(one.caller, { owner: "worker-1" });
    await endLeases(world().database, one.tenant);
    expect((await one.caller.claim(ORDER)).outcome.case).toBe("ambiguous");
    return { ...one, fencingToken };
  }

  async function auditOf({ admin }: AdministeredTenant) {
    return (await admin.listAuditEvents({ action: "ResolveRecord" })).events;
  }

  test("release lets the next claim take an ambiguous key, as its next attempt", async () => {
    const { admin, caller, fencingToken } = await ambiguous();
    const { record } = await resolve(admin, RELEASE);
    expect(record).toMatchObject({ state: Record_State.RELEASED, releaseReason: "found out", fencingToken });
    const claim = await grant(caller);
    expect(claim.attempt).toBe(2);
    expect(claim.fencingToken).toBeGreaterThan(fencingToken);
  });

  test("complete settles an ambiguous key with a result that is replayed", async () => {
    const { admin, caller, fencingToken } = await ambiguous();
    const { record } = await resolve(admin, completeWith("found"));
    expect(record).toMatchObject({
      state: Record_State.COMPLETED,
      fencingToken,
      result: { payload: bytes("found") },
    });
    const { outcome } = await caller.claim(ORDER);
    expect(outcome).toMatchObject({ case: "completed", value: { result: { payload: bytes("found") } } });
    const late = caller.complete({ ...ORDER, fencingToken, result: success("late") });
    expect(await errorOf(late)).toMatchObject({ reason: "ALREADY_COMPLETED" });
    const { alreadyCompleted } = await caller.complete({ ...ORDER, fencingToken, result: success("found") });
    expect(alreadyCompleted).toBe(true);
  });

  test("complete keeps the retention that the claim stamped, counted from now", async () => {
    const one = await world().administeredTenant({
      key_retention_s: 7200,
      result_retention_s: 3600,
      failure_retention_s: 600,
    });
    await grant(one.caller);
    await ageRecords(world().database, one.tenant, 1000);
    const resolution: Resolution = { case: "complete", value: { result: failure("declined") } };
    const { record } = await resolve(one.admin, resolution);
    expect(secondsBetween(record?.completedAt, record?.expiresAt)).toBe(7200);
    expect(secondsBetween(record?.completedAt, record?.resultExpiresAt)).toBe(600);
    expect(secondsBetween(record?.claimedAt, record?.completedAt)).toBeGreaterThanOrEqual(1000);
  });

  test("forget makes a key as if it had never been claimed, but for its fencing tokens", async () => {
    const one = await world().administeredTenant();
    const { fencingToken } = await grant(one.caller, { fingerprint: fingerprintOf("one") });
    await one.caller.complete({ ...ORDER, fencingToken, result: success("wrong") });
    const { record } = await resolve(one.admin, FORGET);
    expect(record).toBeUndefined();
    expect((await one.caller.lookup(ORDER)).record).toBeUndefined();
    expect(await errorOf(one.admin.getRecord(ORDER))).toMatchObject({ reason: "RECORD_NOT_FOUND" });
    const again = await grant(one.caller, { fingerprint: fingerprintOf("another") });
    expect(again).toMatchObject({ attempt: 1 });
    expect(again.fencingToken).toBeGreaterThan(fencingToken);
    expect(secondsBetween((await lookUp(one.caller)).firstClaimedAt, again.firstClaimedAt)).toBe(0);
  });

  test("forget leaves a row without content, which the sweep removes two minutes later", async () => {
    const one = await world().administeredTenant();
    const { fencingToken } = await grant(one.caller, { owner: "secret", claimId: "secret" });
    const checkpoint = { name: "secret", state: bytes("secret") };
    await one.caller.extendLease({ ...ORDER, fencingToken, checkpoint });
    const result = { ...success("secret"), contentType: "secret", metadata: { secret: "secret" } };
    await one.caller.complete({ ...ORDER, fencingToken, result });
    await resolve(one.admin, FORGET);
    const [row] = await world().database.query(
      `select state, fencing_token, r::text as everything, encode(result_payload, 'escape') as payload
         from records r where tenant_id = $1`,
      [one.tenant.id],
    );
    expect(row).toMatchObject({ state: 0, fencing_token: String(fencingToken), payload: null });
    expect(row?.everything).not.toContain("secret");
    expect(row?.everything).not.toContain(Buffer.from("secret").toString("hex"));
    await ageRecords(world().database, one.tenant, 119);
    await sweep(world().database);
    expect(await countRows(world().database, one.tenant)).toBe(1);
    await ageRecords(world().database, one.tenant, 2);
    await sweep(world().database);
    expect(await countRows(world().database, one.tenant)).toBe(0);
  });

  test("a holder learns from its own call that its claim was resolved", async () => {
    const outcomes: [Resolution, string][] = [
      [FORGET, "RECORD_NOT_FOUND"],
      [RELEASE, "ALREADY_RELEASED"],
      [completeWith("found"), "ALREADY_COMPLETED"],
    ];
    for (const [resolution, reason] of outcomes) {
      const { admin, caller } = await world().administeredTenant();
      const { fencingToken } = await grant(caller);
      await resolve(admin, resolution);
      const late = caller.complete({ ...ORDER, fencingToken, result: success("late") });
      expect(await errorOf(late)).toMatchObject({ reason });
      expect(await errorOf(caller.extendLease({ ...ORDER, fencingToken }))).toMatchObject({ reason });
    }
  });

  test("is accepted in the phases that each resolution applies to, and refused in others", async () => {
    type Prepare = (one: AdministeredTenant) => Promise<unknown>;
    const phases: [name: string, prepare: Prepare][] = [
      ["in progress", ({ caller }) => grant(caller)],
      [
        "lapsed",
        async ({ caller, tenant }) => [await grant(caller), await endLeases(world().database, tenant)],
      ],
      [
        "released",
        async ({ caller }) => {
          const { fencingToken } = await grant(caller);
          await caller.release({ ...ORDER, fencingToken, reason: "gave up" });
        },
      ],
      ["completed", ({ caller }) => complete(caller)],
    ];
    const answers: Record<string, (string | undefined)[]> = {};
    for (const [name, prepare] of phases) {
      answers[name] = [];
      for (const resolution of [FORGET, RELEASE, completeWith("found")]) {
        const one = await world().administeredTenant();
        await prepare(one);
        const call = resolve(one.admin, resolution);
        answers[name].push(
          await call.then(
            () => "OK",
            async () => (await errorOf(call)).reason,
          ),
        );
      }
    }
    expect(answers).toEqual({
      "in progress": ["OK", "OK", "OK"],
      lapsed: ["OK", "OK", "OK"],
      released: ["OK", "OK", "OK"],
      completed: ["OK", "ALREADY_COMPLETED", "ALREADY_COMPLETED"],
    });
  });

  test("can be repeated without a second change", async () => {
    const released = await ambiguous();
    const first = await resolve(released.admin, RELEASE);
    expect(await resolve(released.admin, RELEASE, { reason: "again" })).toEqual(first);
    expect(await auditOf(released)).toHaveLength(1);
    const completed = await ambiguous();
    const result = await resolve(completed.admin, completeWith("found"));
    expect(await resolve(completed.admin, completeWith("found"))).toEqual(result);
    expect(await auditOf(completed)).toHaveLength(1);
    const forgotten = await ambiguous();
    await resolve(forgotten.admin, FORGET);
    expect(await errorOf(resolve(forgotten.admin, FORGET))).toMatchObject({ reason: "RECORD_NOT_FOUND" });
    expect(await auditOf(forgotten)).toHaveLength(1);
  });

  test("of many at once, one resolves the record, and the others see its result", async () => {
    const one = await ambiguous();
    const texts = Array.from({ length: 12 }, (_, index) => `found ${index}`);
    const outcomes = await Promise.all(
      texts.map((text) =>
        resolve(one.admin, completeWith(text)).then(
          () => text,
          async (error) => (await errorOf(Promise.reject(error))).reason,
        ),
      ),
    );
    const [winner, ...others] = outcomes.filter((outcome) => outcome !== "ALREADY_COMPLETED");
    expect(others).toEqual([]);
    expect(await auditOf(one)).toHaveLength(1);
    expect(await lookUp(one.caller)).toMatchObject({ result: { payload: bytes(winner ?? "") } });
  });

  test("a fencing token prevents resolving a later claim", async () => {
    const { admin, caller, fencingToken } = await ambiguous();
    const { fencingToken: newer } = await grant(caller, { acceptAmbiguous: true });
    for (const resolution of [FORGET, RELEASE, completeWith("found")]) {
      expect(await errorOf(resolve(admin, resolution, { fencingToken }))).toMatchObject({
        code: "Aborted",
        reason: "CLAIM_SUPERSEDED",
      });
    }
    expect(await lookUp(caller)).toMatchObject({ state: Record_State.IN_PROGRESS, fencingToken: newer });
    await resolve(admin, RELEASE, { fencingToken: newer });
  });

  test("stores and returns a result that is too large to be read together with others", async () => {
    const { admin, caller } = await world().administeredTenant({ max_result_bytes: 200_000 });
    await grant(caller);
    const text = "x".repeat(150_000);
    for (let repeat = 0; repeat < 2; repeat++) {
      const { record } = await resolve(admin, completeWith(text));
      expect(record?.result?.payload).toHaveLength(text.length);
    }
    expect((await admin.getRecord(ORDER)).record?.result?.payload).toHaveLength(text.length);
  });

  test("wakes the calls that wait for the record at once", async () => {
    const { database } = world();
    // No waiter polls.
    const server = await startTestServer(database.url, {}, { waiterTickMs: 3_600_000 });
    onTestFinished(() => server.stop());
    const outcomes: [Resolution, string][] = [
      [FORGET, "claimed"],
      [RELEASE, "claimed"],
      [completeWith("found"), "completed"],
    ];
    for (const [resolution, outcome] of outcomes) {
      const { admin, caller } = await createWorld(database, server, transport).administeredTenant();
      await grant(caller);
      const waiting = caller.claim({ ...ORDER, wait: seconds(30) });
      await untilWaiting(server, 1);
      await resolve(admin, resolution);
      expect((await waiting).outcome.case).toBe(outcome);
    }
  });

  test("is refused alike for an unknown, forgotten or expired key, or another tenant's", async () => {
    const { admin, caller, tenant } = await world().administeredTenant();
    const theirs = await world().administeredTenant();
    await theirs.caller.claim({ ...ORDER, key: "theirs" });
    await caller.claim({ ...ORDER, key: "expired", retention: seconds(60), lease: seconds(1) });
    await ageRecords(world().database, tenant, 61);
    const unknown = await errorOf(resolve(admin, FORGET, { key: "unknown" }));
    expect(unknown).toMatchObject({ code: "NotFound", reason: "RECORD_NOT_FOUND" });
    for (const key of ["theirs", "expired"]) {
      for (const resolution of [FORGET, RELEASE, completeWith("found")]) {
        expect(await errorOf(resolve(admin, resolution, { key }))).toEqual(unknown);
      }
      // Has the name of the record in audit events besides, whether it exists or not.
      const metadata = { audit_target: expect.stringMatching(/^record [a-z]+\/[0-9a-f]{32}$/) };
      expect(await errorOf(admin.getRecord({ ...ORDER, key }))).toEqual({ ...unknown, metadata });
    }
  });

  test("refuses malformed fields, all in one error", async () => {
    const { admin } = await world().administeredTenant();
    const call = admin.resolveRecord({ namespace: "No", key: "", reason: " ", fencingToken: -1n });
    expect(await errorOf(call)).toMatchObject({
      reason: "INVALID_REQUEST",
      fields: ["namespace", "key", "reason", "fencing_token", "resolution"],
    });
    const nothing: Resolution = { case: "complete", value: {} };
    const long = resolve(admin, nothing, { reason: "x".repeat(1025) });
    expect(await errorOf(long)).toMatchObject({ fields: ["reason", "complete.result"] });
  });

  test("refuses a result beyond the policy, and the record is not changed", async () => {
    const { admin, caller } = await world().administeredTenant({ max_result_bytes: 4 });
    await grant(caller);
    expect(await errorOf(resolve(admin, completeWith("found")))).toMatchObject({
      reason: "RESULT_TOO_LARGE",
      metadata: { limit_bytes: "4", actual_bytes: "5" },
    });
    expect(await lookUp(caller)).toMatchObject({ state: Record_State.IN_PROGRESS });
    await resolve(admin, completeWith("done"));
  });

  test("is an audit event with its reason and the states before and after, without key and result", async () => {
    const one = await ambiguous();
    await resolve(one.admin, completeWith("a secret result"), { reason: "the provider's log says so" });
    await resolve(one.admin, FORGET);
    const [forgotten, completed] = await auditOf(one);
    const fencingToken = String(one.fencingToken);
    expect(completed).toMatchObject({
      tenant: one.tenant.name,
      action: "ResolveRecord",
      target: expect.stringMatching(/^record charges\/[0-9a-f]{32}$/),
      reason: "the provider's log says so",
      before: { state: "ambiguous", fencingToken, attempt: 1, owner: "worker-1" },
      after: { state: "completed", fencingToken },
    });
    expect(forgotten).toMatchObject({ target: completed?.target, before: { state: "completed" } });
    expect(forgotten?.after).toBeUndefined();
    const rows = await world().database.query(
      "select e::text as everything from audit_events e where tenant_id = $1",
      [one.tenant.id],
    );
    for (const { everything } of rows) {
      expect(everything).not.toContain(ORDER.key);
      expect(everything).not.toContain("secret");
    }
  });

  test("names a key the same in every event and in GetRecord, and differently for each tenant", async () => {
    const targets = [];
    for (const one of [await ambiguous(), await ambiguous()]) {
      await resolve(one.admin, RELEASE);
      await resolve(one.admin, completeWith("found"));
      const { auditTarget } = await one.admin.getRecord(ORDER);
      expect((await one.admin.listAuditEvents({ target: auditTarget })).events).toHaveLength(2);
      targets.push([auditTarget, ...(await auditOf(one)).map(({ target }) => target)]);
    }
    const [mine, theirs] = targets.map((ofOne) => [...new Set(ofOne)]);
    expect([mine, theirs]).toEqual([[expect.any(String)], [expect.any(String)]]);
    expect(mine).not.toEqual(theirs);
  });

  test("changes nothing if the audit event can't be stored", async () => {
    const { admin, caller } = await ambiguous();
    const { database } = world();
    await database.query("alter table audit_events add constraint nothing check (reason <> 'fails')");
    expect(await errorOf(resolve(admin, FORGET, { reason: "fails" }))).toMatchObject({ reason: "INTERNAL" });
    await database.query("alter table audit_events drop constraint nothing");
    expect(await lookUp(caller)).toMatchObject({ state: Record_State.AMBIGUOUS });
  });

  test("gives up on a row that stays locked, with an error that can be retried", async () => {
    const { admin, tenant } = await ambiguous();
    const connection = await openConnection(world().database);
    await lockRows(connection, tenant, [ORDER.key]);
    expect(await errorOf(resolve(admin, FORGET))).toMatchObject({
      code: "Unavailable",
      reason: "RECORD_CONTENDED",
      retryable: true,
    });
    await connection.query("rollback");
    await resolve(admin, FORGET);
  });

  test("GetRecord returns the whole record of a key", async () => {
    const { admin, caller } = await world().administeredTenant();
    await complete(caller);
    expect((await admin.getRecord(ORDER)).record).toEqual(await lookUp(caller));
    expect(await errorOf(admin.getRecord({ namespace: "No", key: "" }))).toMatchObject({
      fields: ["namespace", "key"],
    });
  });
});
