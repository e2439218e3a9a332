import { text } from "node:stream/consumers";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { AuditEvent_Outcome } from "../../clients/typescript/src/gen/onceward/v1/tenant_pb.ts";
import { connectAdmin, connectOperator } from "../support/calls/admin.ts";
import { expectAccessible } from "../support/console/accessibility.ts";
import { describeInBrowser } from "../support/console/chromium.ts";
import { expectFits } from "../support/console/layout.ts";
import { openConsole, untilLoaded, visit } from "../support/console/open-console.ts";
import { screenshot } from "../support/console/screenshots.ts";
import { seedOfRun } from "../support/console/seed.ts";
import { useConsole } from "../support/console/use-console.ts";
import { partsOf } from "../support/servers/tenants.ts";

/** Presses a button that saves a file, and returns the file's name and text. */
async function download(page: Page, name: string): Promise<{ readonly name: string; readonly text: string }> {
  const begun = page.waitForEvent("download");
  await page.getByRole("button", { name, exact: true }).click();
  const saved = await begun;
  return { name: saved.suggestedFilename(), text: await text(await saved.createReadStream()) };
}

describeInBrowser("The screen Audit", () => {
  const { server, database } = useConsole();

  test("a tenant admin sees what a change altered, filters it, and saves it as files", async () => {
    const { adminKey, callerKey } = seedOfRun();
    const admin = connectAdmin(server, adminKey);
    await admin.updateNamespace({
      namespace: { name: "payments", policy: { maxLease: { seconds: 1800n } } },
      updateMask: { paths: ["policy.max_lease"] },
    });
    await admin.updateNamespace({
      namespace: { name: "payments", policy: { maxLease: { seconds: 3600n } } },
      updateMask: { paths: ["policy.max_lease"] },
    });
    await expect(connectAdmin(server, callerKey).getTenant({})).rejects.toThrow();
    const { apiKey } = await admin.createApiKey({ apiKey: { role: 1, label: "=1+1,worker" } });

    const page = await openConsole(server, { key: adminKey, path: "/audit" });
    expect(await page.getByLabel("Tenant").count()).toBe(0);
    const events = page.getByRole("main").getByRole("table");
    expect(await events.innerText()).not.toContain("Signed in");
    await page.getByLabel("Sign-ins").selectOption("Shown");
    await page.getByRole("button", { name: "Filter" }).click();
    await expect.poll(() => events.innerText()).toContain("Signed in");
    await page.getByRole("button", { name: "Clear" }).click();
    await page.getByLabel("Target").fill("namespace payments");
    await page.getByLabel("Outcome").selectOption("Done");
    await page.getByRole("button", { name: "Filter" }).click();
    await untilLoaded(page);
    expect(new URL(page.url()).search).toBe("?target=namespace+payments&outcome=done");
    const rows = page.locator("tbody").getByRole("row");
    await expect.poll(async () => await rows.first().innerText()).toMatch(/Max lease: 30m becomes 1h/);
    await page.getByLabel("Action").selectOption("Changed namespace");
    await page.getByRole("button", { name: "Filter" }).click();
    await expect.poll(() => new URL(page.url()).searchParams.get("action")).toBe("UpdateNamespace");
    await untilLoaded(page);
    await visit(page, "/audit?action=update");
    await page.getByText(/^There is no action update\. Did you mean Changed namespace, /).waitFor();
    expect(await rows.count()).toBe(0);
    await visit(page, "/audit?target=namespace+payments&outcome=done");
    const actor = partsOf(adminKey).id;
    expect(await rows.first().innerText()).toMatch(
      new RegExp(
        `npm run lab -- traffic\\s+${actor}, you\\s+Changed namespace\\s+namespace payments\\s+Done`,
      ),
    );
    const shown = await rows.count();
    const listed = await admin.listAuditEvents({
      target: "namespace payments",
      outcome: AuditEvent_Outcome.DONE,
    });
    expect(shown).toBe(listed.events.length);
    const lines = await download(page, "JSON lines");
    expect(lines.name).toBe("onceward-audit.jsonl");
    const saved = lines.text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(saved.map(({ id }) => id)).toEqual(listed.events.map(({ id }) => String(id)));
    expect(saved[0]).toMatchObject({ before: { maxLeaseMs: 1_800_000 }, after: { maxLeaseMs: 3_600_000 } });
    await page.getByText(`Saved ${saved.length} events.`).waitFor();

    await page.getByRole("button", { name: "Clear" }).click();
    await page.getByLabel("Target").fill(`api key ${apiKey?.id}`);
    await page.getByRole("button", { name: "Filter" }).click();
    await rows.getByText("=1+1,worker").waitFor();
    await expect.poll(() => rows.count()).toBe(1);
    const csv = await download(page, "CSV");
    expect(csv.name).toBe("onceward-audit.csv");
    expect(csv.text).toMatch(
      /^id,at,tenant,actor,actor_label,action,target,outcome,denial,calls,reason,before,after,request_id\r\n/,
    );
    expect(csv.text.split("\r\n")).toHaveLength(3);
    expect(csv.text).toContain(
      `,${actor},npm run lab -- traffic,CreateApiKey,api key ${apiKey?.id},done,,1,,,"{""`,
    );

    await page.getByText("Saved 1 event.").waitFor();
    await page.getByRole("button", { name: "Clear" }).click();
    // What was saved of another list says nothing about this one.
    await page.getByText("Saved 1 event.").waitFor({ state: "detached" });
    await page.getByLabel("Outcome").selectOption("Denied");
    await page.getByRole("button", { name: "Filter" }).click();
    await rows.first().getByText("role denied").waitFor();
    expect(await rows.first().innerText()).toContain("Read tenant");
    expect(await rows.first().innerText()).toContain(partsOf(callerKey).id);
    await expectAccessible(page);
    await page.getByRole("button", { name: "Clear" }).click();
    await untilLoaded(page);
    await screenshot(page, "audit-tenant");
    await expectFits(page, 320, "audit-narrow");
  });

  test("an operator sees all tenants or one, and learns when a file is cut", async () => {
    const { operatorKey, tenant } = seedOfRun();
    const operator = connectOperator(server, operatorKey);
    await operator.createTenant({ tenant: { name: "other" } });
    await operator.suspendTenant({ name: "other", reason: '=HYPERLINK("http://x")' });
    const page = await openConsole(server, { key: operatorKey, path: "/audit?tenant=other" });
    const rows = page.locator("tbody").getByRole("row");
    expect(await rows.count()).toBe(2);
    expect(await rows.first().innerText()).toMatch(
      /other\s+operator\s+\S+, you\s+Suspended tenant\s+tenant other\s+Done\s+Reason: =HYPERLINK[\s\S]*State: ACTIVE becomes SUSPENDED/,
    );
    const csv = await download(page, "CSV");
    expect(csv.text).toContain(`,"'=HYPERLINK(""http://x"")",`);
    await expectAccessible(page);

    await database.query(
      `insert into audit_events (at, tenant_id, tenant, actor, action, target, outcome, request_id)
       select now() - interval '1 day', id, name, 'crowd', 'UpdateTenant', 'tenant', 'DONE', ''
       from tenants, generate_series(1, 10001) where name = $1`,
      [tenant],
    );
    await page.getByLabel("Tenant", { exact: true }).fill(tenant);
    await page.getByLabel("Actor").fill("crowd");
    await page.getByRole("button", { name: "Filter" }).click();
    await expect.poll(() => rows.count()).toBe(50);
    const cut = await download(page, "JSON lines");
    expect(cut.text.trimEnd().split("\n")).toHaveLength(10_000);
    await page.getByText(/^Saved the newest 10,000 events\. Older ones were skipped/).waitFor();
    await page.getByRole("link", { name: "Next page" }).click();
    await expect.poll(() => rows.count()).toBe(50);
    await page.getByRole("link", { name: "First page" }).waitFor();
  });
});
