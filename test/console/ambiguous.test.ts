import { expect, test } from "vitest";
import { Policy_OnLeaseExpiry } from "../../clients/typescript/src/gen/onceward/v1/policy_pb.ts";
import { Record_State, Result_Kind } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import { connectAdmin } from "../helpers/calls/admin.ts";
import { connectClient } from "../helpers/calls/clients.ts";
import { ageRecords, endLeases } from "../helpers/calls/records.ts";
import { bytes, grant } from "../helpers/calls/verbs.ts";
import { expectAccessible } from "../helpers/console/accessibility.ts";
import { describeInBrowser } from "../helpers/console/chromium.ts";
import { expectNoSidewaysScroll } from "../helpers/console/layout.ts";
import { openConsole, untilLoaded } from "../helpers/console/open-console.ts";
import { screenshot } from "../helpers/console/screenshots.ts";
import { useConsole } from "../helpers/console/use-console.ts";
import { createApiKey, createTenant } from "../helpers/servers/tenants.ts";

const NAMESPACE = "payouts";

describeInBrowser("The queue of ambiguous records", () => {
  const { server, database } = useConsole();

  /** Creates a tenant whose workers died after a checkpoint; the first key has waited for the longest time. */
  async function ambiguousTenant(keys: readonly string[]) {
    const tenant = await createTenant(database);
    const adminKey = await createApiKey(database, { tenantId: tenant.id, role: "TENANT_ADMIN" });
    const admin = connectAdmin(server, adminKey);
    await admin.updateNamespace({
      namespace: { name: NAMESPACE, policy: { onLeaseExpiry: Policy_OnLeaseExpiry.HOLD } },
      updateMask: { paths: ["policy.on_lease_expiry"] },
      allowMissing: true,
    });
    const caller = connectClient(server, tenant.apiKey);
    for (const [index, key] of keys.entries()) {
      const { fencingToken } = await grant(caller, {
        namespace: NAMESPACE,
        key,
        owner: `worker-${index % 2}`,
      });
      const checkpoint = { name: "submitted", state: bytes("{}") };
      await caller.extendLease({ namespace: NAMESPACE, key, fencingToken, checkpoint });
    }
    await endLeases(database, tenant);
    for (const [index, key] of keys.entries()) {
      await ageRecords(database, tenant, (keys.length - index) * 60, key);
    }
    return { tenant, admin, adminKey, caller };
  }

  test("lists the oldest first, and resolves one record in each way", async () => {
    const keys = ["z-oldest", "y-released", "x-forgotten", "w-taken-over"];
    const { admin, adminKey, caller } = await ambiguousTenant(keys);
    const page = await openConsole(server, {
      ...{ key: adminKey, path: "/ambiguous" },
      allowed: { statuses: [409, 400] },
    });
    const listed = page.getByRole("rowheader");
    expect(await listed.allInnerTexts()).toEqual(keys);
    const oldest = page.getByRole("row").filter({ hasText: "z-oldest" });
    expect(await oldest.innerText()).toMatch(/payouts.*4 min.*submitted.*worker-0/s);

    await page.getByRole("button", { name: "It happened z-oldest" }).click();
    const dialog = page.getByRole("dialog");
    const act = (name: string) => dialog.getByRole("button", { name, exact: true });
    await dialog.getByLabel("Result").fill("{paid");
    await dialog.getByLabel("Reason").fill("paid, says the bank");
    expect(await dialog.innerText()).toContain("Not valid JSON");
    expect(await act("Complete").isDisabled()).toBe(true);
    await dialog.getByLabel("Result").fill('{"id":"po_7"}');
    await expectAccessible(page);
    await act("Complete").click();
    await expect.poll(() => listed.allInnerTexts()).toEqual(keys.slice(1));
    await expect
      .poll(() => page.getByRole("status").allInnerTexts())
      .toContainEqual(expect.stringMatching(/is completed/));
    const { record } = await admin.getRecord({ namespace: NAMESPACE, key: "z-oldest" });
    expect(record?.result).toMatchObject({
      ...{ kind: Result_Kind.SUCCESS, payload: bytes('{"id":"po_7"}'), contentType: "application/json" },
    });

    await page.getByRole("button", { name: "It did not happen y-released" }).click();
    await dialog.getByLabel("Reason").fill("no payment");
    await act("Release").click();
    await expect.poll(() => listed.allInnerTexts()).toEqual(keys.slice(2));

    await page.getByRole("button", { name: "Forget x-forgotten" }).click();
    await dialog.getByLabel("Reason").fill("a test payout");
    expect(await act("Forget").isDisabled()).toBe(true);
    await dialog.getByLabel("Type x-forgotten to confirm").fill("x-forgotten");
    await act("Forget").click();
    await expect.poll(() => listed.allInnerTexts()).toEqual(keys.slice(3));

    // Another person releases the record, and a worker claims it, while the dialog is open.
    await page.getByRole("button", { name: "It did not happen w-taken-over" }).click();
    const taken = { namespace: NAMESPACE, key: "w-taken-over" };
    await admin.resolveRecord({ ...taken, resolution: { case: "release", value: {} }, reason: "by phone" });
    await grant(caller, taken);
    await dialog.getByLabel("Reason").fill("no payment");
    await act("Release").click();
    await expect.poll(() => dialog.innerText()).toContain("CLAIM_SUPERSEDED");
    await page.keyboard.press("Escape");
    await expect.poll(() => page.getByRole("main").innerText()).toContain("onceward records list");
    expect(await page.getByRole("main").innerText()).toContain("No record is ambiguous");

    const { events } = await admin.listAuditEvents({ action: "ResolveRecord" });
    const reasons = ["by phone", "a test payout", "no payment", "paid, says the bank"];
    expect(events.map(({ reason }) => reason)).toEqual(reasons);
  });

  test("resolves many records after their count was typed, and tells when the count has changed", async () => {
    const keys = Array.from({ length: 8 }, (_, index) => `payout-${index}`);
    const { admin, adminKey } = await ambiguousTenant(keys);
    const page = await openConsole(server, {
      ...{ key: adminKey, path: "/ambiguous?owner=worker-1" },
      allowed: { statuses: [409, 400] },
    });
    expect(await page.getByRole("rowheader").count()).toBe(4);
    await page.keyboard.press("b");
    const dialog = page.getByRole("dialog");
    expect(await dialog.getByLabel("Owner").inputValue()).toBe("worker-1");
    await dialog.getByLabel("Last checkpoint").fill("submitted");
    await dialog.getByLabel("Reason").fill("the bank lost the file");
    await screenshot(page, "ambiguous-bulk");
    await dialog.getByRole("button", { name: "Count the records" }).click();
    await dialog.getByRole("heading", { name: "Release 4 ambiguous records" }).waitFor();
    await expectAccessible(page);
    await screenshot(page, "ambiguous-bulk-confirm");

    const one = { namespace: NAMESPACE, key: "payout-1" };
    await admin.resolveRecord({ ...one, resolution: { case: "release", value: {} }, reason: "by phone" });
    await dialog.getByLabel("Type 4 to confirm").fill("4");
    await dialog.getByRole("button", { name: "Release 4 ambiguous records" }).click();
    await dialog.getByRole("heading", { name: "Release 3 ambiguous records" }).waitFor();
    expect(await dialog.innerText()).toMatch(/3 records match, and expected_count is 4/);
    const confirm = dialog.getByRole("button", { name: "Release 3 ambiguous records" });
    expect(await confirm.isDisabled()).toBe(true);
    await dialog.getByLabel("Type 3 to confirm").fill("3");
    await confirm.click();

    await page.waitForURL(/\/jobs\/\d+$/);
    await untilLoaded(page);
    const { jobs } = await admin.listRecordJobs({});
    expect(jobs).toMatchObject([{ recordsMatching: 3n }]);
    const remaining = async () =>
      (await admin.listRecords({ state: Record_State.AMBIGUOUS })).records.map(({ owner }) => owner);
    await expect.poll(remaining).toEqual(Array(4).fill("worker-0"));

    await page.goto(`/console/records/${NAMESPACE}/payout-3`);
    const events = page.getByRole("region", { name: "Timeline" }).getByRole("listitem");
    await events.first().waitFor();
    const shown = (await events.allInnerTexts()).join("\n");
    expect(shown).toMatch(/Lease ended without an answer.*Resolved by an administrator/s);
    await page.getByRole("link", { name: "Decisions about many records until then" }).click();
    await untilLoaded(page);
    const newest = page.locator("tbody").getByRole("row").first();
    await expect.poll(() => newest.innerText()).toContain("the bank lost the file");
    await newest.getByRole("link", { name: "The job and what it changed" }).click();
    await page.waitForURL(/\/jobs\/\d+$/);

    await page.goto("/console/ambiguous");
    await untilLoaded(page);
    await page.setViewportSize({ width: 320, height: 800 });
    await expectNoSidewaysScroll(page);
  });
});
