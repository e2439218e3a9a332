import { readdir, readFile, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { connectAdmin, connectOperator } from "../support/calls/admin.ts";
import { connectClient } from "../support/calls/clients.ts";
import { expectAccessible } from "../support/console/accessibility.ts";
import { describeInBrowser } from "../support/console/chromium.ts";
import { expectFits } from "../support/console/layout.ts";
import { openConsole, untilLoaded, visit } from "../support/console/open-console.ts";
import { screenshot } from "../support/console/screenshots.ts";
import { seedOfRun } from "../support/console/seed.ts";
import { useConsole } from "../support/console/use-console.ts";
import { awaitYoungHour } from "../support/database/time.ts";

const HOUR_MS = 3_600_000;
const BUILT = fileURLToPath(new URL("../../server/console/", import.meta.url));
/** The page opens on a slow connection, too. */
const MAX_FIRST_LOAD_BYTES = 135_000;

describeInBrowser("The screen Home", () => {
  const { server, database, administeredTenant } = useConsole();

  test("says what is wrong, leads there, and weighs at most 135 kB on the first load", async ({
    annotate,
  }) => {
    await awaitYoungHour();
    const { adminKey } = seedOfRun();
    const page = await openConsole(server, { key: adminKey, path: "/no-screen" });
    // With many ambiguous records, the server answers a lower bound a second before.
    const calls: string[] = [];
    page.on("request", (request) => calls.push(request.url()));
    const counting = page.waitForRequest(/\/CountAmbiguousRecords/);
    await page.reload();
    expect((await counting).headers()["connect-timeout-ms"]).toBe("3000");
    await visit(page, "/");
    expect(calls.filter((url) => url.includes("ResolveAmbiguousRecords"))).toEqual([]);
    const admin = connectAdmin(server, adminKey);
    const { ambiguous: matching } = await admin.countAmbiguousRecords({});
    expect(matching).toBeGreaterThan(0n);
    expect(
      await page
        .getByRole("navigation")
        .getByRole("link", { name: /^Ambiguous/ })
        .innerText(),
    ).toContain(String(matching));
    const check = (name: string) => page.getByRole("row").filter({ hasText: name });
    expect(await check("Ambiguous records").innerText()).toMatch(new RegExp(`${matching}\\s+They wait`));
    expect(await check("Retention too short").innerText()).toContain("webhooks");
    const main = await page.locator("main").innerText();
    // The worst problem is the title, with the button that leads to it.
    expect(await page.getByRole("heading", { level: 1 }).innerText()).toMatch(
      new RegExp(`^${matching} records wait for you, the oldest for \\d+[dhms]`),
    );
    expect(await page.getByRole("link", { name: "Decide", exact: true }).getAttribute("href")).toBe(
      "/console/ambiguous",
    );
    expect(await check("Misspelt namespaces").innerText()).toMatch(
      /paymnets is not declared, and similar to payments/,
    );
    await check("Misspelt namespaces").getByRole("link", { name: "paymnets" }).waitFor();
    expect(main).toMatch(/duplicates stopped in 24 h, of [\d,]+ claims/s);
    expect(main).toMatch(/Nothing found\s.*unfinished jobs/);

    // The current hour and the 23 before it.
    const first = new Date((Math.floor(Date.now() / HOUR_MS) - 23) * HOUR_MS);
    const { hours } = await admin.getUsage({ after: timestampFromDate(first), pageSize: 1000 });
    const claimed = hours.reduce((sum, { claims }) => sum + claims, 0n);
    await page.getByText("The numbers as a table").click();
    const cells = await page.getByRole("table").last().locator("tbody td:nth-child(2)").allInnerTexts();
    expect(cells).toHaveLength(24);
    const shown = cells.reduce((sum, text) => sum + BigInt(text.replaceAll(",", "")), 0n);
    expect(shown).toBe(claimed);

    const loaded = await page.evaluate(() =>
      performance.getEntriesByType("resource").map(({ name }) => name),
    );
    const files = loaded.filter((name) => name.includes("/console/assets/")).map((name) => basename(name));
    const sizes = await Promise.all(
      ["index.html", ...files.map((name) => `assets/${name}`)].map(
        async (name) => (await stat(join(BUILT, `${name}.br`))).size,
      ),
    );
    const firstLoad = sizes.reduce((sum, size) => sum + size, 0);
    await annotate(`first load of Home: ${firstLoad} bytes with brotli, ${sizes.length} files`);
    expect(sizes.length).toBeGreaterThan(3);
    expect(firstLoad).toBeLessThanOrEqual(MAX_FIRST_LOAD_BYTES);

    await check("Retention too short").getByRole("link", { name: "webhooks" }).click();
    await untilLoaded(page);
    expect(new URL(page.url()).pathname).toBe("/console/namespaces/webhooks");
  });

  test("calls no check good that looked at a part of the namespaces", async () => {
    const { tenant, adminKey: key } = await administeredTenant();
    await database.query(
      "insert into namespaces (tenant_id, name) select $1, 'n' || number from generate_series(1, 21) number",
      [tenant.id],
    );
    // Without a claim, Home shows how to make one.
    await database.query(
      `insert into usage_hours (tenant_id, hour, namespace, claims, repeat_lateness)
       values ($1, date_trunc('hour', now()), 'n1', 1, array_fill(0::bigint, array[12]))`,
      [tenant.id],
    );
    const page = await openConsole(server, { key });
    const check = page.getByRole("row").filter({ hasText: "Retention too short" });
    expect(await check.innerText()).toMatch(/None found yet\s+Only the first 20 namespaces were checked/);
    expect(await check.locator("[data-tone=good]").count()).toBe(0);
  });

  test("shows what happens now: refused calls by reason, and another range", async () => {
    const { tenant, adminKey: key, caller } = await administeredTenant({ quota_live_records: 2 });
    await database.query("update api_keys set label = 'checkout' where tenant_id = $1 and role = 'CALLER'", [
      tenant.id,
    ]);
    const claim = (order: string) => caller.claim({ namespace: "charges", key: order }).catch(() => {});
    for (const order of ["order-1", "order-2", "order-3"]) await claim(order);
    const shown = async () =>
      (await connectOperator(server, seedOfRun().operatorKey).listTenantUsage({ tenant: tenant.name }))
        .tenants[0]?.recentRefused ?? 0n;
    await expect.poll(shown).toBeGreaterThan(0n);
    const page = await openConsole(server, { key });
    const check = page.getByRole("row").filter({ hasText: "Refused calls" });
    expect(await check.innerText()).toMatch(/\d refused because no room for records is left/);
    await check.getByRole("link").first().click();
    // The place that answers: who, why, by which limit, and what to do.
    const refused = page.getByRole("row").filter({ hasText: /refused because no room for records is left/i });
    await expect
      .poll(() => claim("order-3").then(() => refused.first().innerText()))
      .toMatch(/^Refused because no room .*\d+\s+checkout\s+charges\s+2 records/s);
    // What to do is said only here, with the place to do it.
    const advice = page.getByRole("cell").filter({ hasText: "Ask the operator" });
    expect(await advice.getByRole("link").getAttribute("href")).toBe(
      "/console/namespaces/charges#keyRetention",
    );
    await expectAccessible(page);
    await screenshot(page, "refused");
    await expectFits(page, 390, "refused-390");
    await visit(page, "/");
    // On a busy machine a minute may have passed since the last refused call.
    const now = page.getByText(/Now (under )?[\d.]+ claims a second, and (under )?[\d.]+ refused by a quota/);
    await expect.poll(() => Promise.all([now.count(), claim("order-3")]).then(([count]) => count)).toBe(1);
    await expectAccessible(page);
    await screenshot(page, "home-refused");
    await page.getByLabel("Time", { exact: true }).selectOption("30d");
    await page.getByRole("button", { name: "Filter" }).click();
    await page.getByText("Claims and duplicates, the last 30 days").waitFor();
    // The last bar is today's: the keys and the pointer read it.
    const reader = page.getByRole("slider", { name: "Read the chart" });
    const words = /\d\d-\d\d \d\d:00: [1-9]\d* claims?, \d+ duplicates stopped/;
    await reader.focus();
    await page.keyboard.press("Home");
    const spoken = () => reader.getAttribute("aria-valuetext");
    await expect.poll(spoken).toMatch(/: 0 claims, 0 duplicates stopped/);
    await page.keyboard.press("End");
    await expect.poll(spoken).toMatch(words);
    await reader.blur();
    await expect.poll(spoken).toBeNull();
    const picture = page.getByRole("group", { name: "Claims and duplicates" });
    const { width = 0 } = (await picture.boundingBox()) ?? {};
    await picture.hover({ position: { x: width - 20, y: 40 } });
    await expect.poll(() => page.getByRole("figure").innerText()).toMatch(words);
    expect(new URL(page.url()).searchParams.get("range")).toBe("30d");
    await expectFits(page, 320, "home-refused-320");
  });

  test("an unused tenant's Home leads to the first claim, and shows it when it came", async () => {
    const { adminKey: key } = await administeredTenant();
    const page = await openConsole(server, { key });
    await page.getByRole("heading", { level: 1, name: "No claim yet: make the first one" }).waitFor();
    const sampleOf = (language: string) =>
      page.getByRole("region", { name: language }).locator("pre").innerText();
    expect(await sampleOf("curl")).toContain(
      `curl ${new URL(page.url()).origin}/onceward.v1.IdempotencyService/Claim`,
    );
    for (const language of ["TypeScript", "Python", "Go"]) {
      await page.getByRole("button", { name: language, exact: true }).click();
      expect(await sampleOf(language)).toContain("http://127.0.0.1:");
    }
    await page.getByRole("button", { name: "Create a caller's key" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Create the key" }).click();
    const secret = await page
      .getByRole("region", { name: /^The secret of key/ })
      .getByRole("code")
      .innerText();
    await expectAccessible(page);
    await screenshot(page, "home-first-claim");
    await connectClient(server, secret).claim({ namespace: "charges", key: "order-1" });
    await page.getByText(/0 duplicates stopped in 24 h, of 1 claim/).waitFor({ timeout: 30_000 });
  });

  test("the built files are hashed and compressed, with nothing inline or foreign", async () => {
    const names = (await readdir(BUILT, { recursive: true, withFileTypes: true }))
      .filter((file) => file.isFile() && !/\.(br|gz)$/.test(file.name))
      .map((file) => join(file.parentPath, file.name));
    expect(names.length).toBeGreaterThan(10);
    for (const name of names) {
      const bytes = await readFile(name);
      expect(brotliDecompressSync(await readFile(`${name}.br`)).equals(bytes), name).toBe(true);
      expect(gunzipSync(await readFile(`${name}.gz`)).equals(bytes), name).toBe(true);
      if (!name.endsWith("index.html")) {
        expect(name).toMatch(/assets\/[\w-]+-[\w-]{8}\.(js|css|svg)$/);
      }
      if (name.endsWith(".css")) expect(bytes.toString()).not.toMatch(/url\(|@import/);
      if (name.endsWith(".js")) expect(bytes.toString()).not.toMatch(/\bimport\(["'`](?!\.\/)|\beval\(/);
    }
    const html = await readFile(join(BUILT, "index.html"), "utf8");
    expect(html).not.toMatch(/<style|\sstyle=|\son\w+=|javascript:/i);
    for (const [tag] of html.matchAll(/<(?:script|link)\b[^>]*>/g)) {
      expect(tag).toMatch(/(?:src|href)="\/console\/assets\//);
    }
  });
});
