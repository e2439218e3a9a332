import { Code } from "@connectrpc/connect";
import type { Locator, Page } from "playwright-core";
import { expect, test } from "vitest";
import { Tenant_State } from "../../clients/typescript/src/gen/onceward/v1/tenant_pb.ts";
import { connectAdmin, connectOperator } from "../support/calls/admin.ts";
import { connectClient } from "../support/calls/clients.ts";
import { expectAccessible } from "../support/console/accessibility.ts";
import { describeInBrowser } from "../support/console/chromium.ts";
import { expectFits } from "../support/console/layout.ts";
import { openConsole, untilLoaded, visit } from "../support/console/open-console.ts";
import { screenshot } from "../support/console/screenshots.ts";
import { seedOfRun } from "../support/console/seed.ts";
import { useConsole } from "../support/console/use-console.ts";
import { createTenant, partsOf } from "../support/servers/tenants.ts";

/** Of the noisiest tenant: more than its limit answers in a minute, also where they take that long. */
const CLAIMS = 200;

/** Fills in a dialog that asks for a typed name and a reason, and presses its button. */
async function confirm(page: Page, action: string, typed: string, reason?: string): Promise<void> {
  const dialog = page.getByRole("dialog");
  const button = dialog.getByRole("button", { name: action, exact: true });
  if (reason !== undefined) await dialog.getByLabel("Reason").fill(reason);
  expect(await button.isDisabled()).toBe(true);
  await dialog.getByLabel(`Type ${typed} to confirm`).fill(typed);
  await button.click();
  await dialog.waitFor({ state: "detached" });
}

describeInBrowser("The screens Tenants and Tenant", () => {
  const { server, database } = useConsole();

  test("a tenant is created with its first key, suspended, resumed and deleted", async () => {
    const { operatorKey, tenant: seeded } = seedOfRun();
    const operator = connectOperator(server, operatorKey);
    // 404: what the API answers once the tenant's records are removed.
    const page = await openConsole(server, {
      key: operatorKey,
      path: "/tenants",
      allowed: { statuses: [404] },
    });
    await page.getByRole("rowheader", { name: seeded, exact: true }).waitFor();
    await page.getByRole("button", { name: "Create a tenant" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("acme");
    await dialog.getByLabel("Purpose of the first key").fill("Ada");
    await expectAccessible(page);
    await dialog.getByRole("button", { name: "Create the tenant and its key" }).click();
    const secret = await page.getByText(/^ow_[a-z0-9]{16}_/).innerText();
    const admin = connectAdmin(server, secret);
    expect((await admin.getTenant({})).tenant?.name).toBe("acme");
    expect((await admin.listApiKeys({})).apiKeys[0]).toMatchObject({ label: "Ada", role: 2 });
    await page.getByRole("link", { name: "acme" }).click();
    await untilLoaded(page);
    expect(await page.content()).not.toContain(secret);

    await page.getByRole("button", { name: "Suspend the tenant" }).click();
    await confirm(page, "Suspend", "acme", "unpaid since May");
    await page.getByText("Suspended the tenant acme.").waitFor();
    expect((await operator.getTenant({ name: "acme" })).tenant?.state).toBe(Tenant_State.SUSPENDED);
    await page.getByRole("button", { name: "Resume the tenant" }).click();
    await confirm(page, "Resume", "acme", "paid");
    await page.getByText("Resumed the tenant acme.").waitFor();
    expect((await operator.getTenant({ name: "acme" })).tenant?.state).toBe(Tenant_State.ACTIVE);
    // What is lost, in the same words before and in the dialog.
    const lost = await page.getByText(/all its records are deleted/).innerText();
    await page.getByRole("button", { name: "Delete the tenant" }).click();
    expect(lost).toContain(await dialog.getByText(/all its records are deleted/).innerText());
    await confirm(page, "Delete", "acme", "contract ended");
    await page.getByText("Deleted the tenant acme.").waitFor();
    await expect
      .poll(async () => {
        try {
          return (await operator.getTenant({ name: "acme" })).tenant?.state;
        } catch (error) {
          return (error as { code: Code }).code === Code.NotFound ? Tenant_State.DELETING : error;
        }
      })
      .toBe(Tenant_State.DELETING);
    const { events } = await operator.listAuditEvents({ tenant: "acme" });
    const reasons = events.map(({ action, reason }) => `${action} ${reason}`.trim()).toReversed();
    expect(reasons).toEqual([
      "CreateTenant",
      "CreateTenantApiKey",
      "SuspendTenant unpaid since May",
      "ResumeTenant paid",
      "DeleteTenant contract ended",
    ]);
  });

  test("limits are set after a preview of their effect on the present use", async () => {
    const { operatorKey, tenant: name } = seedOfRun();
    const operator = connectOperator(server, operatorKey);
    // The seed's counts of records are stored while a quota needs them.
    await operator.updateTenantLimits({
      ...{ name, quotas: { liveRecords: 1_000_000n }, updateMask: { paths: ["quotas.live_records"] } },
    });
    const use = async () => {
      const { tenants } = await operator.listTenantUsage({});
      return tenants.find(({ tenant }) => tenant === name)?.liveRecords ?? 0n;
    };
    await expect.poll(use).toBeGreaterThan(10n);
    // 409: what the API answers for an old etag; 400: for a value beyond its range.
    const page = await openConsole(server, {
      ...{ key: operatorKey, path: `/tenants/${name}` },
      allowed: { statuses: [400, 409] },
    });
    const preview = page.getByRole("button", { name: "Preview the limits" });
    await page.getByLabel("Live records").fill("a lot");
    await preview.click();
    await page.getByText(/^It must be a whole number such as 500/).waitFor();
    await page.getByLabel("Live records").fill("10");
    await page.getByLabel("Weight").fill("101");
    await preview.click();
    await page.getByText(/^It must be/).waitFor();
    await page.getByLabel("Weight").fill("1");

    await operator.updateTenantLimits({
      ...{ name, quotas: { burst: 77 }, updateMask: { paths: ["quotas.burst"] } },
    });
    await preview.click();
    await page.getByRole("row", { name: "Burst as the operations per second 77 not changed" }).waitFor();
    expect(await page.getByLabel("Live records").inputValue()).toBe("10");
    // Elsewhere the form's buttons, which stay in sight, cover a part of a field.
    await page.getByRole("button", { name: "Delete the tenant" }).scrollIntoViewIfNeeded();
    await expectAccessible(page);
    await screenshot(page, "tenant-conflict");

    await preview.click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Live records: 1,000,000 becomes 10").waitFor();
    await dialog.getByRole("row", { name: /^Live records [\d,]+ 10 Used up Refuses new claims/ }).waitFor();
    await dialog.getByRole("row", { name: /^Stored bytes .* not limited/ }).waitFor();
    await expectAccessible(page);
    await screenshot(page, "tenant-limits");
    await confirm(page, "Set the limits", name);
    await page.getByText(`Saved the limits of ${name}.`).waitFor();
    const { tenant } = await operator.getTenant({ name });
    expect(tenant?.quotas).toMatchObject({ liveRecords: 10n, burst: 77 });
    await page.getByText(/ of 10, /).waitFor();
    await page.getByText("Used up").waitFor();
    // The form's own change is not shown as another's.
    expect(await page.getByText("The limits were changed while you edited them.").count()).toBe(0);
    await expectAccessible(page);
    await screenshot(page, "tenant");
    await expectFits(page, 320, "tenant-narrow");
    await visit(page, "/tenants");
    await screenshot(page, "tenants-full");
  });

  test("the noisiest tenant is the first without a click, and limited with four", async () => {
    const noisy = await createTenant(database);
    const client = connectClient(server, noisy.apiKey);
    const keys = Array.from({ length: CLAIMS }, (_, index) => ({
      namespace: "charges",
      key: `noise-${index}`,
    }));
    await Promise.all(keys.map((key) => client.claim(key)));
    const page = await openConsole(server, { key: seedOfRun().operatorKey, path: "/tenants" });
    const first = page.getByRole("rowheader").first();
    // The list refreshes itself. Before its claims are counted, the tenant can be the first by its name.
    await expect
      .poll(() => page.locator("tbody").getByRole("row").first().innerText(), { timeout: 60_000 })
      .toMatch(new RegExp(`^${noisy.name}\\s+(?!0 )\\S+ a second`));
    const chart = page.getByRole("figure").filter({ hasText: "Claims and duplicates, the last hour" });
    let clicks = 0;
    const click = async (target: Locator) => {
      await target.click();
      clicks += 1;
    };
    await click(first.getByRole("link"));
    await page.getByLabel("Operations per second").fill("1");
    await click(page.getByRole("button", { name: "Preview the limits" }));
    const dialog = page.getByRole("dialog");
    const effect = await dialog.getByRole("row", { name: /^Operations per second/ }).innerText();
    const [, claims = 0, refused = 0] =
      /Of the ([\d,]+) claims of the busiest minute in the last 15, at least ([\d,]+) would have been refused/
        .exec(effect)
        ?.map(Number) ?? [];
    expect(claims, effect).toBeLessThanOrEqual(CLAIMS);
    // A second's worth is answered at once, and one in each second of a minute.
    expect(refused, effect).toBeGreaterThanOrEqual(claims - 61);
    expect(refused, effect).toBeGreaterThan(0);
    await dialog.getByLabel(`Type ${noisy.name} to confirm`).fill(noisy.name);
    await click(dialog.getByRole("button", { name: "Set the limits" }));
    await page.getByText(`Saved the limits of ${noisy.name}.`).waitFor();
    expect(clicks).toBeLessThanOrEqual(4);
    // Shown once the minute of the claims has ended.
    await database.query(
      `insert into usage_minutes (minute, replica_id, counts)
       values (date_trunc('minute', now()) - interval '2 minutes', gen_random_uuid(), jsonb_build_object($1::text, '[70, 7]'::jsonb))`,
      [String(noisy.id)],
    );
    await page.reload();
    await untilLoaded(page);
    expect(await chart.innerText()).toMatch(/Granted: \d+.*Duplicates stopped: 7/s);
    // One row says the rate and its limit, and that of refusals their period.
    const use = await page.getByRole("main").innerText();
    expect(use.match(/[\d.]+ a second/g)).toHaveLength(2);
    expect(use).toMatch(/Refused\s+[\d,]+ since /);
    await chart.scrollIntoViewIfNeeded();
    await expectAccessible(page);
    await screenshot(page, "tenant-busy");
    await expectFits(page, 320, "tenant-busy-narrow");
  });

  test("an operator's key is created, with a secret that is shown once, and revoked", async () => {
    const { operatorKey } = seedOfRun();
    const page = await openConsole(server, { key: operatorKey, path: "/operator-keys" });
    await page.getByText("(yours)").waitFor();
    await page.getByRole("button", { name: "Create a key", exact: true }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Purpose").fill("on call");
    await dialog.getByRole("button", { name: "Create the key" }).click();
    const secret = await page.getByText(/^ow_[a-z0-9]{16}_/).innerText();
    const { id } = partsOf(secret);
    await connectOperator(server, secret).listTenants({});
    await page.getByRole("row").filter({ hasText: id }).getByText("on call").waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: `Revoke ${id}` }).click();
    await confirm(page, "Revoke", id);
    await page.getByText(`Revoked key ${id}.`).first().waitFor();
    await page.getByRole("row").filter({ hasText: id }).getByText("Revoked").waitFor();
    const { apiKeys } = await connectOperator(server, operatorKey).listOperatorApiKeys({});
    expect(apiKeys.find((key) => key.id === id)?.revokedAt).toBeDefined();
  });
});
