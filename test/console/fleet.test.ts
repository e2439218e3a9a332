import { expect, test } from "vitest";
import { connectOperator } from "../support/calls/admin.ts";
import { expectAccessible } from "../support/console/accessibility.ts";
import { describeInBrowser } from "../support/console/chromium.ts";
import { expectFits } from "../support/console/layout.ts";
import { openConsole } from "../support/console/open-console.ts";
import { screenshot } from "../support/console/screenshots.ts";
import { seedOfRun } from "../support/console/seed.ts";
import { useConsole } from "../support/console/use-console.ts";
import type { TestDatabase } from "../support/database/database.ts";

/** Adds a replica that needs no heartbeat for a while; its id begins with `digit`. */
async function addReplica(database: TestDatabase, digit: string, version: string): Promise<void> {
  await database.query(
    `insert into replicas (id, version, seen_at, degraded) values
     (overlay(gen_random_uuid()::text placing $1 from 1)::uuid, $2, now() + interval '5 minutes', '{redis_bypassed}')`,
    [digit.repeat(8), version],
  );
}

describeInBrowser("The screen Fleet", () => {
  const { server, database } = useConsole();

  test("shows doctor's worst finding in place of Healthy, and all of them", async () => {
    const { operatorKey } = seedOfRun();
    const page = await openConsole(server, { key: operatorKey, path: "/fleet" });
    const findings = page.getByRole("list", { name: "Findings" }).getByRole("listitem");
    // The tests' Postgres is fast, not durable.
    const unsafe = findings.filter({ hasText: "Fsync off" });
    await unsafe.waitFor();
    expect(await unsafe.innerText()).toMatch(
      /^Error\s+Fsync off[\s\S]*Set fsync = on\.\s+Runbook: deploy\/runbook\.md#fsync_off/,
    );
    const main = page.getByRole("main");
    const diagnosis = await connectOperator(server, operatorKey).diagnose({});
    expect(await findings.count()).toBe(diagnosis.findings.length);
    const [worst] = diagnosis.findings;
    const problems = diagnosis.findings.filter(({ severity }) => severity === worst?.severity).length;
    await main.getByText(new RegExp(`^Doctor: ${problems} (error|warning)s?$`)).waitFor();
    await page.getByRole("link", { name: `Fleet ${problems}`, exact: true }).waitFor();
    await page.getByText(new RegExp(`${diagnosis.passed.length} checks found nothing`)).waitFor();
    await expectAccessible(page);
    await screenshot(page, "fleet-doctor");
    await expectFits(page, 320, "fleet-narrow");
  });

  test("shows versions and degraded replicas side by side, live until it is paused", async () => {
    const { operatorKey } = seedOfRun();
    await addReplica(database, "0", "0.0.9");
    const page = await openConsole(server, { key: operatorKey, path: "/fleet", clock: "movable" });
    const { replicaId, version } = await connectOperator(server, operatorKey).getServerInfo({});
    const rows = page.getByRole("region", { name: /^2 versions: / }).getByRole("row");
    expect(await rows.count()).toBe(3);
    expect(await rows.filter({ hasText: replicaId }).innerText()).toMatch(
      new RegExp(`answers this page\\s+${version}\\s+Healthy\\s`),
    );
    expect(await rows.filter({ hasText: "00000000-" }).innerText()).toMatch(
      /0\.0\.9\s+Redis bypassed\s+now\s+-/,
    );
    const degraded = page.getByRole("list", { name: "Degraded states" }).getByRole("listitem");
    expect(await degraded.innerText()).toMatch(
      /Redis bypassed[\s\S]*duplicates cost more[\s\S]*On 00000000-[\s\S]*runbook\.md#redis-is-bypassed/,
    );

    const lists: string[] = [];
    page.on("request", (request) => {
      if (request.url().endsWith("/ListReplicas")) lists.push(request.url());
    });
    await addReplica(database, "1", "0.0.9");
    await page.clock.runFor(5_000);
    await rows.filter({ hasText: "11111111-" }).waitFor();
    await page.getByRole("button", { name: "Live" }).click();
    const listed = lists.length;
    await page.clock.runFor(60_000);
    await page.getByText("Its configuration").click();
    expect(await page.getByRole("row").filter({ hasText: "DATABASE_URL" }).first().innerText()).not.toContain(
      new URL(database.url).password || "://",
    );
    expect(lists).toHaveLength(listed);
    await expectAccessible(page);
  });
});
