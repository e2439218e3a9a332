import { expect, test } from "vitest";
import { Record_State } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import { endLeases } from "../support/calls/records.ts";
import { bytes, fingerprintOf, grant, seconds, success } from "../support/calls/verbs.ts";
import { expectAccessible } from "../support/console/accessibility.ts";
import { describeInBrowser } from "../support/console/chromium.ts";
import { expectFits } from "../support/console/layout.ts";
import { openConsole, untilLoaded, visit } from "../support/console/open-console.ts";
import { screenshot } from "../support/console/screenshots.ts";
import { useConsole } from "../support/console/use-console.ts";

/** A key that is a path, a query, markup and a change of direction. */
const ODD_KEY = "a/b%2F?c#<b>\u202e..";
/** What a person sees of it: the character that reverses the text has a name. */
const SHOWN_KEY = ODD_KEY.replace("\u202e", "U+202E");
const FINGERPRINT = fingerprintOf("a payment of 7 EUR");

describeInBrowser("The records of keys", () => {
  const { server, database, administeredTenant } = useConsole();

  async function tenantWithRecords() {
    const { tenant, adminKey, admin, caller } = await administeredTenant();
    const odd = { namespace: "charges", key: ODD_KEY };
    const lost = await grant(caller, { ...odd, owner: "worker-1", fingerprint: FINGERPRINT });
    const checkpoint = { name: "submitted", state: bytes("{}") };
    await caller.extendLease({ ...odd, fencingToken: lost.fencingToken, checkpoint });
    await endLeases(database, tenant, ODD_KEY);
    // The page follows a record while its lease is held: longer than a busy machine needs for a test.
    const held = { owner: "worker-2", fingerprint: FINGERPRINT, lease: seconds(900) };
    const { fencingToken } = await grant(caller, { ...odd, ...held });
    for (const namespace of ["charges", "refunds"]) {
      const twin = { namespace, key: "twin" };
      const claim = await grant(caller, twin);
      await caller.release({ ...twin, fencingToken: claim.fencingToken, reason: "no funds" });
    }
    return { tenant, adminKey, caller, admin, odd: { ...odd, fencingToken } };
  }

  test("are listed by the filters of the address", async () => {
    const { adminKey } = await tenantWithRecords();
    const page = await openConsole(server, { key: adminKey, path: "/records?state=released" });
    const listed = page.getByRole("rowheader");
    expect(await listed.allInnerTexts()).toEqual(["twin", "twin"]);

    const filters = page.getByRole("main");
    await filters.getByRole("combobox", { name: "Namespace" }).fill("charges");
    await page.getByLabel("State").selectOption("In progress");
    await page.getByLabel("Owner").fill("worker-2");
    await page.getByLabel("Fingerprint").fill(Buffer.from(FINGERPRINT).toString("hex"));
    await page.getByLabel("Claimed after").fill("1h");
    await page.getByRole("button", { name: "Filter" }).click();
    await expect.poll(() => listed.allInnerTexts()).toEqual([SHOWN_KEY]);
    const shared = new URL(page.url()).searchParams;
    expect(shared.get("after")).toMatch(/^\d{4}-\d\d-\d\dT/);
    await page.getByLabel("Claimed before").fill("1h");
    await page.getByRole("button", { name: "Filter" }).click();
    await expect.poll(() => page.getByRole("main").innerText()).toContain("No record matches");
    expect(await page.getByRole("main").innerText()).toContain("onceward records list --namespace charges");

    await expectAccessible(page);
    await screenshot(page, "records");
  });

  test("are found by the bare key, shown with their history, and resolved", async () => {
    const { adminKey, admin, caller, odd } = await tenantWithRecords();
    const page = await openConsole(server, {
      ...{ key: adminKey, path: "/jobs" },
      allowed: { statuses: [404] },
    });
    const main = page.getByRole("main");
    const find = async (key: string) => {
      // From every screen, without a click.
      await page.keyboard.press("/");
      await page.keyboard.type(key);
      await page.keyboard.press("Enter");
    };
    await find("twi");
    await expect.poll(() => main.innerText()).toContain("No namespace has the key twi. These begin with it:");
    const found = page.getByRole("status", { name: "Search" });
    expect(await found.getByRole("link", { name: "twin" }).count()).toBe(2);
    await found.getByRole("link", { name: "List all records whose keys begin with it" }).click();
    await page.waitForURL("**/console/records?prefix=twi");
    await expect.poll(() => page.getByRole("rowheader").allInnerTexts()).toEqual(["twin", "twin"]);
    await find("char");
    await found.getByText("Namespaces that begin with it: charges.").waitFor();
    await find(Buffer.from(FINGERPRINT).toString("hex"));
    await expect.poll(() => page.getByRole("rowheader").allInnerTexts()).toEqual([SHOWN_KEY]);
    await find("0197f3c8-1d2e-7abc-8def-0123456789ab");
    await expect.poll(() => main.innerText()).toContain("Which request claimed a key is not kept");
    // A space that was pasted along is not part of the key, unless there is such a key.
    await find("twin ");
    await expect.poll(() => main.innerText()).toContain("2 records have this key:");
    const search = page.getByLabel("Search records");
    await search.fill(ODD_KEY);
    await search.press("Enter");
    await page.getByRole("heading", { name: "Timeline" }).waitFor();
    expect(await main.innerText()).toContain(SHOWN_KEY);
    const command = page.getByText(/^onceward records show/);
    expect(await command.innerText()).toBe(
      `onceward records show charges 'a/b%2F?c#<b>'"$(printf '\\342\\200\\256')"'..'`,
    );
    await page.reload();
    await page.getByRole("heading", { name: "Timeline" }).waitFor();
    const events = page.getByRole("region", { name: "Timeline" }).getByRole("listitem");
    expect((await events.allInnerTexts()).map((event) => event.split("\n").slice(1).join(" "))).toEqual([
      expect.stringMatching(/^Claimed.*attempt 1.*worker-1/),
      expect.stringMatching(/^Lost to the next claim.*attempt 1.*submitted/),
      expect.stringMatching(/^Claimed.*attempt 2.*worker-2.*submitted/),
      expect.stringMatching(/^Lease ends/),
      expect.stringMatching(/^Key is forgotten/),
    ]);

    // Another caller comes meanwhile, and one with a different request.
    await caller.claim({ namespace: "charges", key: ODD_KEY, fingerprint: FINGERPRINT });
    const different = caller.claim(
      { namespace: "charges", key: ODD_KEY, fingerprint: fingerprintOf("8 EUR") },
      { headers: { "x-request-id": "the-different-one" } },
    );
    await expect(different).rejects.toThrow();
    const duplicates = page.getByRole("region", { name: "Duplicates and refusals" });
    await expect
      .poll(() => duplicates.innerText(), { timeout: 20_000 })
      .toContain("At least 1 duplicate and 1 refusal.");
    expect(await events.filter({ hasText: "a different request with this key" }).innerText()).toMatch(
      /API key \w+\s+request the-different-one/,
    );

    // The holder completes the claim; the screen follows.
    const payload = bytes('<script>"secret"</script>');
    const result = { ...success(""), payload, contentType: "text/html", metadata: { status: "201" } };
    await caller.complete({ ...odd, result });
    await page.getByRole("heading", { name: "Result" }).waitFor();
    expect(await main.innerText()).not.toMatch(/secret|\b201\b/);
    // A time that has just passed does not read as one that comes.
    expect(await main.innerText()).not.toMatch(/Completed\s[^\n]* in \d/);
    await page.getByRole("button", { name: "Show the result" }).click();
    await page.getByRole("button", { name: "Show the metadata" }).click();
    expect(await main.innerText()).toMatch(/<script>"secret"<\/script>.*status\s+201/s);
    expect(await page.getByRole("button", { name: /^It / }).count()).toBe(0);
    await expectAccessible(page);
    await screenshot(page, "record");
    await expectFits(page, 320, "record-narrow");

    await page.getByRole("button", { name: "Forget" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Reason").fill("a test");
    await dialog.getByLabel("Type charges to confirm").fill("charges");
    await dialog.getByRole("button", { name: "Forget" }).click();
    await page.waitForURL(/\/records$/);
    await untilLoaded(page);
    const { records } = await admin.listRecords({ state: Record_State.COMPLETED });
    expect(records).toEqual([]);
    await page.goBack();
    await expect.poll(() => main.innerText()).toContain("has no record of this key");
    const { auditTarget } = await admin.getRecord({ namespace: "charges", key: "twin" });
    await visit(page, "/records/charges/twin");
    const audit = page.getByRole("link", { name: "Audit events of this record" });
    expect(await audit.getAttribute("href")).toBe(
      `/console/audit?${new URLSearchParams({ target: auditTarget })}`,
    );
  });

  test("are followed after their lease has ended, until they are settled", async () => {
    const { tenant, adminKey, caller, odd } = await tenantWithRecords();
    await endLeases(database, tenant, ODD_KEY);
    const path = `/records/charges/${encodeURIComponent(ODD_KEY)}`;
    const page = await openConsole(server, { key: adminKey, path, clock: "movable" });
    const main = page.getByRole("main");
    expect(await main.innerText()).toContain("The lease ended without an answer");

    const next = await grant(caller, { ...odd, owner: "worker-3", fingerprint: FINGERPRINT });
    await page.clock.runFor(10_000);
    await expect.poll(() => main.innerText()).toContain("A caller holds the claim");
    await endLeases(database, tenant, ODD_KEY);
    await page.clock.runFor(3_000);
    await expect.poll(() => main.innerText()).toContain("The lease ended without an answer");
    await caller.complete({ ...odd, fencingToken: next.fencingToken, result: success("{}") });
    await page.clock.runFor(10_000);
    await expect.poll(() => main.innerText()).toContain("The operation is done");
  });

  test("have a screen for every key that an address can name", async () => {
    const { adminKey } = await tenantWithRecords();
    const page = await openConsole(server, {
      ...{ key: adminKey, path: "/records/charges/line%0Abreak" },
      allowed: { statuses: [400] },
    });
    await page.getByRole("navigation", { name: "Screens" }).waitFor();
    await page.getByRole("main").getByRole("alert").waitFor();
    await page.goto("/console/no%0Ascreen");
    await expect.poll(() => page.getByRole("main").innerText()).toContain("There is no such page");
  });
});
