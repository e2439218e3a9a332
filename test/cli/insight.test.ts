import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { latenessBucket } from "../../server/src/admin/usage/lateness.ts";
import { awaitYoungHour } from "../support/database/time.ts";
import { useCliWorld } from "../support/processes/cli-world.ts";

/** Usage is stored at once, so that a test need not wait. */
const world = useCliWorld({ ONCEWARD_USAGE_FLUSH: "100ms" });
const DAY_S = 86_400;

/** A tenant with 30 days of claims in `charges`, of which six repeats came after eight hours, and a claim in `mails`. */
async function withHistory() {
  await awaitYoungHour();
  const tenant = await world().tenantWithCli({ key_retention_s: DAY_S });
  const { id } = tenant.tenant;
  await world().database.query(
    `insert into insight_hours (tenant_id, namespace, hour, retention_s, claims, first_claims, buckets, repeats)
     select $1, 'charges', (date_trunc('day', now() at time zone 'utc') - day * interval '1 day') at time zone 'utc',
            $2, 1000, 1000, case when day = 1 then array[$3::smallint] else '{}' end,
            case when day = 1 then array[6::bigint] else '{}' end
       from generate_series(1, 30) day`,
    [id, DAY_S, latenessBucket(8 * 3600 * 1000)],
  );
  await world().database.query(
    `insert into insight_sample_shifts (tenant_id, namespace, kind, since) values ($1, 'charges', 'key', now() - interval '30 days')`,
    [id],
  );
  // A claim without a fingerprint in charges, and one with it in mails.
  await world().database.query(
    `insert into insight_key_days select $1, 'charges', date_trunc('day', now()), 400, 400, 0, 0, 0, 0`,
    [id],
  );
  await tenant.caller.claim({ namespace: "charges", key: "order-1" });
  const fingerprint = createHash("sha256").update("mail").digest();
  await tenant.caller.claim({ namespace: "mails", key: "mail-1", fingerprint });
  await expect.poll(async () => (await tenant.cli.json("usage", "show")) as unknown[]).toHaveLength(2);
  return tenant;
}

test("advice says what each retention would have missed, and which is enough, by namespace", async () => {
  const { cli } = await withHistory();
  const { exit, stdout } = await cli("advice", "charges", "--max-late", "20000");
  expect(exit).toBe(0);
  expect(stdout).toMatch(/^Key retention in charges: 24h; claims since .*Z\.$/m);
  expect(stdout).toMatch(/^Longer than needed\. 1h would be long enough/m);
  expect(stdout).toMatch(/^24h \(now\) +0 +0 of 3\d /m);
  // Six repeats came later than six hours, in 30 days and the hours of today: 6 a month in the first hour
  // of a day, 5.8 in the last.
  expect(stdout).toMatch(/^6h +(6|5\.\d+) +1 of 3\d /m);

  const all = (await cli("advice", "--max-late", "20000", "--wide")).stdout.trim().split("\n");
  expect(all).toEqual([
    expect.stringMatching(/^NAMESPACE +KEY RETENTION +VERDICT +OBSERVED SINCE +ADVICE$/),
    expect.stringMatching(/^charges +24h +Longer than needed +\S+ +1h would be long enough/),
    expect.stringMatching(/^mails +24h +Too early to say +\S+ +\d+ more days of traffic /),
  ]);
  expect(await cli.json("advice", "charges", "--max-late", "20000")).toMatchObject({
    namespace: "charges",
    maxLatePerMillion: 20_000,
    ...{ verdict: "VERDICT_LONGER_THAN_NEEDED", advisedRetention: "3600s" },
  });
  expect(await cli("advice", "charges", "--max-late", "none")).toMatchObject({ exit: 2 });
});

test("keys quality names the suspected defect with evidence, advice and what is unknown", async () => {
  const { cli } = await withHistory();
  const { exit, stdout } = await cli("keys", "quality", "charges");
  expect(exit).toBe(0);
  expect(stdout).toMatch(/^Keys in charges: 30,\d{3} claims, since .*Z\. Intervals hold with 95 %\.$/m);
  expect(stdout).toMatch(
    /^Suspected: Claims without a fingerprint\n {2}Claims without a fingerprint: 40[01] of 40[01] \(99\.\d+ % – 100 %\)\n {2}for example: order-1\n {2}\S/m,
  );
  // Keys are stored apart from usage, perhaps later.
  await expect
    .poll(async () => (await cli("keys", "quality", "mails")).stdout)
    .toMatch(
      /^Nothing is suspected\.\n\nNot known yet: A new key for each retry \(needs .*999 more claims\)\.$/m,
    );
  expect((await cli("keys", "quality", "--wide")).stdout.trim().split("\n")).toEqual([
    expect.stringMatching(/^NAMESPACE +CLAIMS +OBSERVED SINCE +SUSPECTED$/),
    expect.stringMatching(/^charges +30,\d{3} +\S.* no fingerprints$/),
    expect.stringMatching(/^mails +1 +\S.* nothing$/),
  ]);
  expect(await cli("keys", "quality", "mials")).toMatchObject({
    ...{ exit: 4, stdout: "", stderr: "onceward: There is no namespace mials. Did you mean mails?\n" },
  });
});
