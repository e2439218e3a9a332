import { text } from "node:stream/consumers";
import type { Locator } from "playwright-core";
import { expect, test } from "vitest";
import { Policy_OnLeaseExpiry } from "../../clients/typescript/src/gen/onceward/v1/policy_pb.ts";
import { Record_State, Result_Kind } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import { ageRecords, endLeases } from "../support/calls/records.ts";
import { bytes, grant } from "../support/calls/verbs.ts";
import { expectAccessible } from "../support/console/accessibility.ts";
import { describeInBrowser } from "../support/console/chromium.ts";
import { expectFits } from "../support/console/layout.ts";
import { openConsole, untilLoaded, visit } from "../support/console/open-console.ts";
import { screenshot } from "../support/console/screenshots.ts";
import { useConsole } from "../support/console/use-console.ts";
import { partsOf } from "../support/servers/tenants.ts";

const NAMESPACE = "payouts";

describeInBrowser("The queue of ambiguous records", () => {
  const { server, database, administeredTenant } = useConsole();

  /** Creates a tenant whose workers died after a checkpoint; the first key has waited for the longest time. */
  async function ambiguousTenant(keys: readonly string[]) {
    const { tenant, adminKey, admin, caller } = await administeredTenant();
    await admin.updateNamespace({
      namespace: { name: NAMESPACE, policy: { onLeaseExpiry: Policy_OnLeaseExpiry.HOLD } },
      updateMask: { paths: ["policy.on_lease_expiry"] },
      allowMissing: true,
    });
    for (const [index, key] of keys.entries()) {
      const { fencingToken } = await grant(caller, {
        namespace: NAMESPACE,
        key,
        owner: `worker-${index % 2}`,
      });
      const checkpoint = { name: "submitted", state: bytes(`{"transfer":"tr_${key}"}`) };
      await caller.extendLease({ namespace: NAMESPACE, key, fencingToken, checkpoint });
    }
    // The claims are older than the ends of their leases.
    await ageRecords(database, tenant, 60);
    await endLeases(database, tenant);
    for (const [index, key] of keys.entries()) {
      await ageRecords(database, tenant, (keys.length - index) * 60, key);
    }
    return { tenant, admin, adminKey, caller };
  }

  test("lists the oldest first, and resolves one record in each way", async () => {
    const keys = ["z-oldest", "y-released", "x-forgotten", "w-taken-over"];
    const { tenant, admin, adminKey, caller } = await ambiguousTenant(keys);
    const page = await openConsole(server, {
      ...{ key: adminKey, path: "/ambiguous" },
      allowed: { statuses: [409, 400] },
    });
    const listed = page.getByRole("rowheader");
    // Each owner's are together.
    expect(await listed.allInnerTexts()).toEqual(["z-oldest", "x-forgotten", "y-released", "w-taken-over"]);
    const oldest = page.getByRole("row").filter({ hasText: "z-oldest" });
    expect(await oldest.innerText()).toMatch(/payouts.*4m.*submitted.*\{"transfer": "tr_z-oldest"\}/s);
    // One record is in the last fifth of its retention.
    expect(await page.getByText("Ends soon").count()).toBe(0);
    await database.query(
      `update records set claimed_at = now() - interval '70 hours', expires_at = now() + interval '5 hours'
        where tenant_id = $1 and key = $2`,
      [tenant.id, "z-oldest"],
    );
    await page.reload();
    await oldest.getByText("Ends soon").waitFor();
    expect(await page.getByText("Ends soon").count()).toBe(1);
    await page.getByText(/The first key ends in [45]h/).waitFor();
    // Without a provider link, the list leads to the field.
    await page.getByText("Set a provider link").getByRole("link", { name: NAMESPACE }).click();
    await page.getByLabel("Provider link").waitFor();
    await expect
      .poll(() => page.evaluate(() => document.activeElement?.id))
      .toBe(await page.getByLabel("Provider link").getAttribute("id"));
    await visit(page, "/ambiguous");
    const ofOne = page.getByRole("row").filter({ hasText: /worker-0 2 records, the oldest 4m ago/ });
    await ofOne.getByRole("link", { name: "All of this owner" }).waitFor();

    const choose = async (key: string, answer: string) => {
      await page.getByLabel(`Select ${key}`).check();
      await page.getByRole("button", { name: answer, exact: true }).click();
    };
    await choose("z-oldest", "It happened");
    const dialog = page.getByRole("dialog");
    const act = (name: string) => dialog.getByRole("button", { name, exact: true });
    await dialog.getByLabel("Result").fill("{paid");
    await dialog.getByLabel("Reason").fill("paid, says the bank");
    expect(await dialog.innerText()).toContain("Not valid JSON");
    expect(await act("It happened").isDisabled()).toBe(true);
    await dialog.getByLabel("Result").fill('{"id":"po_7"}');
    await expectAccessible(page);
    await act("It happened").click();
    await expect.poll(() => listed.allInnerTexts()).toEqual(["y-released", "w-taken-over", "x-forgotten"]);
    await expect
      .poll(() => page.getByRole("status").allInnerTexts())
      .toContainEqual(expect.stringMatching(/^It happened: 1 record/));
    const { record } = await admin.getRecord({ namespace: NAMESPACE, key: "z-oldest" });
    expect(record?.result).toMatchObject({
      ...{ kind: Result_Kind.SUCCESS, payload: bytes('{"id":"po_7"}'), contentType: "application/json" },
    });

    await choose("y-released", "It did not happen");
    await dialog.getByLabel("Reason").fill("no payment");
    await act("It did not happen").click();
    await expect.poll(() => listed.allInnerTexts()).toEqual(keys.slice(2));

    await choose("x-forgotten", "Forget");
    await dialog.getByLabel("Reason").fill("a test payout");
    expect(await act("Forget").isDisabled()).toBe(true);
    await dialog.getByLabel("Type x-forgotten to confirm").fill("x-forgotten");
    await act("Forget").click();
    await expect.poll(() => listed.allInnerTexts()).toEqual(keys.slice(3));

    // Another person releases the record, and a worker claims it, while the dialog is open.
    await choose("w-taken-over", "It did not happen");
    const taken = { namespace: NAMESPACE, key: "w-taken-over" };
    await admin.resolveRecord({ ...taken, resolution: { case: "release", value: {} }, reason: "by phone" });
    await grant(caller, taken);
    await dialog.getByLabel("Reason").fill("no payment");
    await act("It did not happen").click();
    await expect.poll(() => dialog.innerText()).toContain("CLAIM_SUPERSEDED");
    await page.keyboard.press("Escape");
    await expect.poll(() => page.getByRole("main").innerText()).toContain("No record is ambiguous");
    expect(await page.getByRole("main").innerText()).toContain("onceward records list");

    const { events } = await admin.listAuditEvents({ action: "ResolveRecord" });
    const reasons = ["by phone", "a test payout", "no payment", "paid, says the bank"];
    expect(events.map(({ reason }) => reason)).toEqual(reasons);
  });

  test("resolves all that match, those that were counted, and tells when the count has changed", async () => {
    const keys = Array.from({ length: 8 }, (_, index) => `payout-${index}`);
    const { admin, adminKey } = await ambiguousTenant(keys);
    const page = await openConsole(server, {
      ...{ key: adminKey, path: "/ambiguous?owner=worker-1&checkpoint=submitted" },
      allowed: { statuses: [409, 400] },
    });
    expect(await page.getByRole("rowheader").count()).toBe(4);
    // How many it is, before anything is asked.
    await page.getByRole("button", { name: "All 4 that match" }).waitFor();
    await page.keyboard.press("b");
    // Nothing is preselected: the decision is the button.
    await page.getByRole("button", { name: "It did not happen" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("heading", { name: "It did not happen: all 4 records that match" }).waitFor();
    await dialog.getByLabel("Reason").fill("the bank lost the file");
    await expectAccessible(page);

    const one = { namespace: NAMESPACE, key: "payout-1" };
    await admin.resolveRecord({ ...one, resolution: { case: "release", value: {} }, reason: "by phone" });
    await dialog.getByRole("button", { name: "It did not happen: 4 records" }).click();
    await dialog.getByRole("heading", { name: "It did not happen: all 3 records that match" }).waitFor();
    expect(await dialog.innerText()).toMatch(/3 records match, and expected_count is 4/);
    await dialog.getByRole("button", { name: "It did not happen: 3 records" }).click();

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
    // From the record to its job, to its audit events and back, and to each record.
    await events.getByRole("link", { name: /^job \d+$/ }).click();
    await page.waitForURL(/\/jobs\/\d+$/);
    await page.getByRole("link", { name: "Audit events of this change" }).click();
    await untilLoaded(page);
    const newest = page.locator("tbody").getByRole("row").first();
    await expect.poll(() => newest.innerText()).toContain("the bank lost the file");
    await newest.getByRole("link", { name: "The job and what it changed" }).click();
    await page.waitForURL(/\/jobs\/\d+$/);
    await page.getByRole("link", { name: "Records that it resolved" }).click();
    const resolved = page.locator("tbody").getByRole("rowheader");
    await expect
      .poll(async () => (await resolved.allInnerTexts()).sort())
      .toEqual(["payout-3", "payout-5", "payout-7"]);
    await expectAccessible(page);

    await page.goto("/console/ambiguous");
    await untilLoaded(page);
    await expectFits(page, 320, "ambiguous-320");
  });

  test("all but three of 52 payouts are resolved with eight clicks, or with the keyboard", async () => {
    const keys = Array.from({ length: 52 }, (_, index) => `payout-${String(index).padStart(2, "0")}`);
    const { admin, adminKey } = await ambiguousTenant(keys);
    await admin.updateTenant({
      tenant: { policy: { providerLink: "https://pay.example/search?q={key}&by={owner}" } },
    });
    const page = await openConsole(server, { key: adminKey, path: "/" });
    let clicks = 0;
    const click = async (target: Locator) => {
      await target.click();
      clicks += 1;
    };
    await click(page.getByRole("link", { name: /^Ambiguous \d+$/ }));
    const lookUp = page.getByRole("link", { name: "Look up payout-07" });
    expect(await lookUp.getAttribute("href")).toBe("https://pay.example/search?q=payout-07&by=worker-1");
    await screenshot(page, "ambiguous");
    await click(page.getByLabel("Select all rows"));
    for (const key of ["payout-03", "payout-08"]) await click(page.getByLabel(`Select ${key}`));
    // The arrow keys lead to the next row, and the space bar chooses it.
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Space");
    expect(await page.getByLabel("Select payout-10").isChecked()).toBe(false);
    await page.getByText("49 records selected").waitFor();
    await page.getByText("It happened: also if it failed permanently.").waitFor();
    await click(page.getByRole("button", { name: "It happened" }));
    await page.keyboard.type("paid, says the bank");
    await screenshot(page, "ambiguous-decision");
    await click(page.getByRole("button", { name: "It happened: 49 records" }));
    await page.getByText("It happened: 49 records.").waitFor();
    expect(clicks).toBeLessThanOrEqual(8);
    const listed = page.getByRole("rowheader");
    await expect.poll(() => listed.allInnerTexts()).toEqual(["payout-03", "payout-08", "payout-10"]);
    const { events } = await admin.listAuditEvents({ action: "ResolveRecord", pageSize: 100 });
    expect(events).toHaveLength(49);
  });

  test("J and K lead through the queue, and a decision about a record to the next one", async () => {
    const keys = Array.from({ length: 6 }, (_, index) => `payout-${index}`);
    const { admin, adminKey } = await ambiguousTenant(keys);
    const page = await openConsole(server, { key: adminKey, path: "/ambiguous?owner=worker-0" });
    const heading = page.getByRole("heading", { level: 1 });
    const queue = page.getByRole("navigation", { name: "Queue" });
    const dialog = page.getByRole("dialog");
    const opened = async (key: string, position: string) => {
      await expect.poll(() => heading.innerText()).toBe(key);
      await queue.getByText(position, { exact: true }).waitFor();
    };
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    await page.getByText("1 record selected").waitFor();
    expect(await page.getByLabel("Select payout-2").isChecked()).toBe(true);
    await page.keyboard.press("k");
    await page.keyboard.press("Enter");
    await opened("payout-0", "1 of 3 ambiguous records of worker-0");
    const current = page.getByRole("navigation", { name: "Screens" }).locator("[aria-current=page]");
    expect(await current.innerText()).toMatch(/^Ambiguous/);
    // What a person needs to decide is where the decision is.
    const panel = page.getByRole("main").getByText("Last checkpoint: submitted").locator("..");
    expect(await panel.innerText()).toMatch(/\{"transfer": "tr_payout-0"\}.*Set a provider link.*payouts/s);
    await panel.getByRole("button", { name: "It happened" }).waitFor();
    await expectAccessible(page);
    await screenshot(page, "ambiguous-record");
    await page.keyboard.press("j");
    await opened("payout-2", "2 of 3 ambiguous records of worker-0");
    await page.keyboard.press("j");
    await opened("payout-4", "3 of 3 ambiguous records of worker-0");
    await page.keyboard.press("k");
    await opened("payout-2", "2 of 3 ambiguous records of worker-0");

    await page.keyboard.press("n");
    await dialog.getByLabel("Reason").fill("the bank never got it");
    await dialog.getByRole("button", { name: "It did not happen" }).click();
    await opened("payout-4", "2 of 2 ambiguous records of worker-0");
    await page.keyboard.press("y");
    await dialog.getByLabel("Reason").fill("paid, says the bank");
    await dialog.getByRole("button", { name: "It happened" }).click();
    await page.waitForURL("**/console/ambiguous?owner=worker-0");
    await expect.poll(() => page.getByRole("rowheader").allInnerTexts()).toEqual(["payout-0"]);
    const by = partsOf(adminKey).id;
    await page.getByText(`Settled in the last 24 h: 2 records, 2 by ${by}.`).waitFor();
    const stateOf = async (key: string) =>
      (await admin.getRecord({ namespace: NAMESPACE, key })).record?.state;
    expect(await Promise.all(["payout-2", "payout-4"].map(stateOf))).toEqual([
      ...[Record_State.RELEASED, Record_State.COMPLETED],
    ]);
  });

  test("keys are exported, and the answers in the file imported after a preview", async () => {
    const keys = ["=1+1", "po,2", "po-3", "po-4"];
    const { admin, adminKey } = await ambiguousTenant(keys);
    const page = await openConsole(server, { key: adminKey, path: "/ambiguous" });
    const [saved] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Export keys" }).click(),
    ]);
    const file = await text(await saved.createReadStream());
    const lines = file.split("\r\n");
    expect(lines[0]).toBe("key,happened?,result,namespace,owner,checkpoint,ambiguous_since,provider");
    expect(lines[1]).toMatch(/^'=1\+1,,,payouts,worker-0,submitted,\d{4}-/);

    await page.getByRole("button", { name: "Import answers…" }).click();
    const dialog = page.getByRole("dialog");
    const give = (content: string) =>
      dialog
        .getByLabel("File")
        .setInputFiles({ name: "answers.csv", mimeType: "text/csv", buffer: Buffer.from(content) });
    await give(file.replace(",,,payouts", ",perhaps,,payouts"));
    await dialog.getByText('Line 2, column "happened?": "perhaps" is not yes or no.').waitFor();
    await give("x".repeat(3 * 1_024 * 1_024 + 1));
    await dialog.getByText(/^At most 3MiB/).waitFor();

    const answers = ["yes,", "no,", 'yes,"{""id"": 3}"', ","];
    const answered = lines.map((line, index) =>
      index === 0 ? line : line.replace(",,,payouts", `,${answers[index - 1]},payouts`),
    );
    await give([...answered, "po-9,yes"].join("\n"));
    await dialog.getByText("2 happened: completed").waitFor();
    await dialog.getByText("1 did not happen").waitFor();
    await dialog.getByText("1 skipped: without an answer").click();
    await dialog.getByRole("listitem").filter({ hasText: "po-4" }).waitFor();
    await dialog.getByText("1 skipped: not ambiguous").waitFor();
    await dialog.getByRole("heading", { name: "Result of the 2 that happened" }).waitFor();
    await expectAccessible(page);
    await screenshot(page, "ambiguous-import");
    await dialog.getByLabel("Reason").fill("the bank's list");
    await dialog.getByRole("button", { name: "Resolve 3 records" }).click();
    await page.getByText("Resolved 3 records by the file.").waitFor();
    const stateOf = async (key: string) =>
      (await admin.getRecord({ namespace: NAMESPACE, key })).record?.state;
    expect(await Promise.all(keys.map(stateOf))).toEqual([
      ...[Record_State.COMPLETED, Record_State.RELEASED, Record_State.COMPLETED, Record_State.AMBIGUOUS],
    ]);
    const { record } = await admin.getRecord({ namespace: NAMESPACE, key: "po-3" });
    expect(new TextDecoder().decode(record?.result?.payload)).toBe('{"id": 3}');
  });
});
