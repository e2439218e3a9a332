import { expect, test } from "vitest";
import {
  type GetRetentionAdviceResponse,
  type RetentionCandidate,
  GetRetentionAdviceResponse_Verdict as Verdict,
} from "../../clients/typescript/src/gen/onceward/v1/tenant_admin_pb.ts";
import { latenessBucket } from "../../server/src/admin/usage/lateness.ts";
import { type AdministeredTenant, describeAdministration } from "../support/calls/admin.ts";
import { errorOf } from "../support/calls/errors.ts";
import { ageRecords } from "../support/calls/records.ts";
import { complete, grant, ORDER } from "../support/calls/verbs.ts";
import type { TestDatabase } from "../support/database/database.ts";
import { runRecordJobs } from "../support/database/jobs.ts";
import { secondsOf } from "../support/database/time.ts";
import { setNamespacePolicy, type TestTenant } from "../support/servers/tenants.ts";

const HOUR_S = 3600;
const DAY_S = 24 * HOUR_S;
const EAGER = { ONCEWARD_SWEEP_INTERVAL: "100ms", ONCEWARD_USAGE_FLUSH: "100ms" };

interface Planted {
  readonly days: number;
  readonly claimsPerDay: number;
  /** Recognised repeats of one day. */
  readonly recognised?: { readonly latenessS: number; readonly repeats: number };
  /** Sampled late repeats of one day. */
  readonly late?: { readonly latenessS: number; readonly repeats: number; readonly shift: number };
  readonly shift?: number;
}

/** Stores what a namespace with a retention of a day would have been counted in the last days. */
async function plant(database: TestDatabase, { id }: TestTenant, planted: Planted): Promise<void> {
  const { days, claimsPerDay, recognised, late, shift = 0 } = planted;
  await database.query(
    `insert into insight_hours (tenant_id, namespace, hour, retention_s, claims, first_claims, buckets, repeats)
     select $1, 'charges', (date_trunc('day', now() at time zone 'utc') - day * interval '1 day') at time zone 'utc',
            86400, $3, $3, '{}', '{}'
       from generate_series(1, $2::int) day`,
    [id, days, claimsPerDay],
  );
  await database.query(
    `insert into insight_sample_shifts (tenant_id, namespace, kind, shift, since)
     values ($1, 'charges', 'key', $2, now() - $3 * interval '1 day')`,
    [id, shift, days],
  );
  if (recognised !== undefined) {
    await database.query(
      `update insight_hours set buckets = array[$2::smallint], repeats = array[$3::bigint]
        where tenant_id = $1 and hour = (select max(hour) from insight_hours where tenant_id = $1)`,
      [id, latenessBucket(recognised.latenessS * 1000), recognised.repeats],
    );
  }
  if (late !== undefined) {
    await database.query(
      `insert into insight_late_hours (tenant_id, namespace, hour, retention_s, shift, buckets, repeats, squares)
       select tenant_id, namespace, max(hour), 86400, $2, array[$3::smallint], array[$4::bigint], array[$4::bigint]
         from insight_hours where tenant_id = $1 group by tenant_id, namespace`,
      [id, late.shift, latenessBucket(late.latenessS * 1000), late.repeats],
    );
  }
}

async function advised(tenant: AdministeredTenant, fields: { readonly maxLatePerMillion?: number } = {}) {
  const advice = await tenant.admin.getRetentionAdvice({ namespace: "charges", ...fields });
  const candidate = (retentionS: number): RetentionCandidate => {
    const found = advice.candidates.find(({ keyRetention }) => secondsOf(keyRetention) === retentionS);
    if (found === undefined) throw new Error(`${retentionS} s is not a candidate`);
    return found;
  };
  return { advice, candidate };
}

/** Rates and numbers of days grow between two calls, with the time that is observed. */
function withoutFractions({ candidates, ...advice }: GetRetentionAdviceResponse) {
  const stable = candidates.map(({ keyRetention, evidence }) => ({ keyRetention, kind: evidence.case }));
  return { ...advice, candidates: stable };
}

function lateOf({ evidence }: RetentionCandidate) {
  if (evidence.case !== "late") throw new Error(`the evidence is ${evidence.case}`);
  return evidence.value;
}

describeAdministration("retention advice", { env: EAGER }, (world) => {
  const newTenant = () => world().administeredTenant({ key_retention_s: DAY_S });

  test("says of planted data what each retention would have missed, and recommends one", async () => {
    const tenant = await newTenant();
    await plant(world().database, tenant.tenant, {
      days: 30,
      claimsPerDay: 1000,
      recognised: { latenessS: 8 * HOUR_S, repeats: 6 },
      late: { latenessS: 40 * HOUR_S, repeats: 10, shift: 2 },
      shift: 2,
    });
    const { advice, candidate } = await advised(tenant, { maxLatePerMillion: 20_000 });
    expect(secondsOf(advice.keyRetention)).toBe(DAY_S);
    const half = lateOf(candidate(6 * HOUR_S));
    expect(half).toMatchObject({ claims: 30_000n, daysWithLate: 1 });
    const months = half.daysObserved / 30;
    expect(half.daysObserved).toBeGreaterThanOrEqual(30);
    expect(half.perMonth * months).toBeCloseTo(6 + 40, 6);
    // Garwood's limits of 10 sampled repeats, times 4, and the six that are known.
    expect(half.perMonthLow * months).toBeCloseTo(6 + 4 * 4.7954, 2);
    expect(half.perMonthHigh * months).toBeCloseTo(6 + 4 * 18.3904, 2);
    expect(lateOf(candidate(DAY_S)).perMonth * months).toBeCloseTo(40, 6);
    const longer = lateOf(candidate(3 * DAY_S));
    expect(longer).toMatchObject({ perMonth: 0, daysWithLate: 0 });
    expect(longer.maxPerMillion).toBeLessThan(lateOf(candidate(DAY_S)).maxPerMillion);
    expect(candidate(3 * DAY_S).records).toBeCloseTo((3 * 30_000) / half.daysObserved, 3);
    expect(advice.verdict).toBe(Verdict.LONGER_THAN_NEEDED);
    // All duplicates of both sources: the picture does not depend on the retention in force.
    expect(advice.lateness.map(({ repeats }) => repeats)).toEqual([6n, 40n]);
  });

  test("is not contradicted by the advice that follows it", async () => {
    const tenant = await newTenant();
    await plant(world().database, tenant.tenant, {
      days: 30,
      claimsPerDay: 1000,
      recognised: { latenessS: 8 * HOUR_S, repeats: 6 },
      late: { latenessS: 40 * HOUR_S, repeats: 10, shift: 0 },
    });
    const before = (await advised(tenant)).advice;
    expect(before).toMatchObject({
      verdict: Verdict.TOO_SHORT,
      advisedRetention: { seconds: BigInt(2 * DAY_S) },
    });
    await tenant.admin.updateNamespace({
      namespace: { name: "charges", policy: { keyRetention: before.advisedRetention } },
      updateMask: { paths: ["policy.key_retention"] },
      allowMissing: true,
    });
    const after = (await advised(tenant)).advice;
    expect(after).toMatchObject({ verdict: Verdict.NONE_LATE, keyRetention: before.advisedRetention });
    expect(after.advisedRetention).toBeUndefined();
    // The evidence is the same.
    expect(after.lateness).toEqual(before.lateness);
  });

  test("looks as far back as a long retention", async () => {
    const tenant = await world().administeredTenant({ key_retention_s: 200 * DAY_S });
    await plant(world().database, tenant.tenant, { days: 150, claimsPerDay: 1 });
    await world().database.query("update insight_hours set retention_s = $2 where tenant_id = $1", [
      ...[tenant.tenant.id, 200 * DAY_S],
    ]);
    const days = (await advised(tenant)).candidate(200 * DAY_S);
    expect(lateOf(days).daysObserved).toBeGreaterThanOrEqual(150);
  });

  test("says of a namespace whose claims are all refused that they are", async () => {
    const tenant = await newTenant();
    const plantHour = (namespace: string, counters: string, values: string) =>
      world().database.query(
        `insert into usage_hours (tenant_id, hour, namespace, repeat_lateness, ${counters})
         values ($1, date_trunc('hour', now()), $2, '{}', ${values})`,
        [tenant.tenant.id, namespace],
      );
    await plantHour("late", "claims, late_keys_refused", "5, 5");
    await plantHour("full", "refused_by_rate", "3");
    await plantHour("left", "claims, granted", "1, 1");
    const { advice } = await tenant.admin.listRetentionAdvice({
      namespaces: ["late", "full", "left", "new"],
    });
    expect(advice.map(({ verdict }) => verdict)).toEqual([
      ...[Verdict.ALL_REFUSED, Verdict.ALL_REFUSED, Verdict.NO_CLAIMS, Verdict.NO_CLAIMS],
    ]);
  });

  test("says what is missing where the data is too little", async () => {
    const tenant = await newTenant();
    const nothing = await advised(tenant);
    expect(nothing.advice).toMatchObject({
      namespace: "charges",
      maxLatePerMillion: 1,
      verdict: Verdict.NO_CLAIMS,
    });
    expect(nothing.advice.observedSince).toBeUndefined();
    await plant(world().database, tenant.tenant, { days: 10, claimsPerDay: 1000 });
    const { advice, candidate } = await advised(tenant);
    expect(advice.verdict).toBe(Verdict.NONE_LATE);
    expect(lateOf(candidate(DAY_S)).perMonth).toBe(0);
    // Keys as old as this are sampled for too few days.
    expect(candidate(7 * DAY_S).evidence.case).toBe("insufficient");
  });

  test("follows the namespace's own policy, within the operator's bounds", async () => {
    const tenant = await world().administeredTenant({ max_key_retention_s: 2 * DAY_S });
    await setNamespacePolicy(world().database, tenant.tenant, "charges", { key_retention_s: DAY_S });
    const { advice } = await advised(tenant);
    expect(secondsOf(advice.keyRetention)).toBe(DAY_S);
    expect(Math.max(...advice.candidates.map(({ keyRetention }) => secondsOf(keyRetention)))).toBe(2 * DAY_S);
  });

  test.each([
    [{ namespace: "Charges" }, "namespace"],
    [{ namespace: "charges", maxLatePerMillion: 0.0001 }, "max_late_per_million"],
    [{ namespace: "charges", maxLatePerMillion: 100_001 }, "max_late_per_million"],
    [{ namespace: "charges", maxLatePerMillion: -1 }, "max_late_per_million"],
    [{ namespace: "charges", maxLatePerMillion: Number.NaN }, "max_late_per_million"],
  ])("refuses %j", async (request, field) => {
    const { admin } = await newTenant();
    const error = await errorOf(admin.getRetentionAdvice(request));
    expect(error).toMatchObject({ reason: "INVALID_REQUEST", fields: [field] });
  });

  test("is the same for several namespaces at once, in the request's order", async () => {
    const tenant = await newTenant();
    await plant(world().database, tenant.tenant, {
      days: 30,
      claimsPerDay: 1000,
      recognised: { latenessS: 8 * HOUR_S, repeats: 6 },
      late: { latenessS: 40 * HOUR_S, repeats: 10, shift: 2 },
      shift: 2,
    });
    await setNamespacePolicy(world().database, tenant.tenant, "refunds", { key_retention_s: HOUR_S });
    const namespaces = ["refunds", "charges", "emails", "charges"];
    const { advice } = await tenant.admin.listRetentionAdvice({ namespaces, maxLatePerMillion: 20_000 });
    expect(advice.map(({ namespace }) => namespace)).toEqual(["refunds", "charges", "emails"]);
    expect(advice.map(({ observedSince }) => observedSince !== undefined)).toEqual([false, true, false]);
    for (const answer of advice) {
      const { namespace, maxLatePerMillion } = answer;
      const alone = await tenant.admin.getRetentionAdvice({ namespace, maxLatePerMillion });
      expect(withoutFractions(answer)).toEqual(withoutFractions(alone));
    }
  });

  test.each([
    [{ namespaces: [] }, "namespaces must be 1-20 names, are 0"],
    [
      { namespaces: Array.from({ length: 21 }, (_, n) => `charges-${n}`) },
      "namespaces must be 1-20 names, are 21",
    ],
    [{ namespaces: ["charges", "Charges"] }, "namespaces each must be 1-63 lower-case letters"],
    [{ namespaces: ["charges"], maxLatePerMillion: -1 }, "max_late_per_million must be between"],
  ])("refuses a list for %j", async (request, message) => {
    const { admin } = await newTenant();
    const error = await errorOf(admin.listRetentionAdvice(request));
    expect(error.reason).toBe("INVALID_REQUEST");
    expect(error.message).toContain(message);
  });
});

// The change of retention is seen by the next claims.
describeAdministration(
  "what is observed of retention",
  { env: EAGER, tuning: { credentialAgeMs: 100 } },
  (world) => {
    const query = (table: string, { id }: TestTenant) =>
      world().database.query(`select 1 from ${table} where tenant_id = $1`, [id]);

    async function tenantWithTombstone() {
      const tenant = await world().administeredTenant({ key_retention_s: HOUR_S });
      await complete(tenant.caller);
      await ageRecords(world().database, tenant.tenant, 2 * HOUR_S);
      await expect.poll(() => query("insight_sampled_keys", tenant.tenant)).toHaveLength(1);
      return tenant;
    }

    test("is counted under each retention that was in force in an hour", async () => {
      const { tenant, caller } = await world().administeredTenant({ key_retention_s: HOUR_S });
      const claims = async () => {
        const rows = await world().database.query<{ retention_s: number; claims: string; repeats: string[] }>(
          "select retention_s, claims, repeats from insight_hours where tenant_id = $1 order by retention_s",
          [tenant.id],
        );
        return rows.map(({ retention_s, claims, repeats }) => [retention_s, Number(claims), repeats]);
      };
      await grant(caller);
      await caller.claim(ORDER);
      await expect.poll(claims).toEqual([[HOUR_S, 2, ["1"]]]);
      await setNamespacePolicy(world().database, tenant, ORDER.namespace, { key_retention_s: DAY_S });
      const underNew = async () => {
        await caller.claim(ORDER);
        return (await claims()).length;
      };
      await expect.poll(underNew, { interval: 200 }).toBe(2);
      const [, [retentionS, count] = []] = (await claims()) as [unknown[], unknown[]];
      expect(retentionS).toBe(DAY_S);
      expect(count).toBeGreaterThan(0);
    });

    test("leaves no tombstone behind when a namespace is deleted and its records are forgotten", async () => {
      const tenant = await tenantWithTombstone();
      await setNamespacePolicy(world().database, tenant.tenant, ORDER.namespace, { key_retention_s: DAY_S });
      await grant(tenant.caller, { key: "order-2" });
      const deleted = await tenant.admin.deleteNamespace({ name: ORDER.namespace, force: true });
      expect(deleted.job).toBeDefined();
      expect(await query("insight_sampled_keys", tenant.tenant)).toEqual([]);
      // As if a record that ended before the deletion was swept after it.
      await world().database.query(
        `with sample as (insert into insight_sample_shifts (tenant_id, namespace, kind, since) values ($1, $2, 'key', now()))
       insert into insight_sampled_keys (tenant_id, namespace, kind, key_hash, fingerprint_hash, depth, first_claimed_at, ended_at, keep_until)
       values ($1, $2, 'key', decode(repeat('00', 16), 'hex'), '', 0, now(), now(), 'infinity')`,
        [tenant.tenant.id, ORDER.namespace],
      );
      await runRecordJobs(world().database);
      for (const table of ["insight_sampled_keys", "insight_sample_shifts"]) {
        expect(await query(table, tenant.tenant)).toEqual([]);
      }
    });

    test("leaves nothing behind when a tenant is deleted", async () => {
      const { tenant, caller } = await tenantWithTombstone();
      await grant(caller, { key: "order-2" });
      await expect.poll(() => query("insight_hours", tenant)).not.toEqual([]);
      const operator = await world().operator();
      await operator.deleteTenant({ name: tenant.name, reason: "test" });
      await runRecordJobs(world().database);
      for (const table of [
        "insight_sampled_keys",
        "insight_sample_shifts",
        "insight_hours",
        "insight_late_hours",
      ]) {
        await expect.poll(() => query(table, tenant)).toEqual([]);
      }
      expect(await world().database.query("select 1 from tenants where id = $1", [tenant.id])).toEqual([]);
    });
  },
);
