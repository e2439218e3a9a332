import { KeyDefect } from "@onceward/client/admin";
import { expect, test } from "vitest";
import { connectAdmin } from "../support/calls/admin.ts";
import { expectAccessible } from "../support/console/accessibility.ts";
import { describeInBrowser } from "../support/console/chromium.ts";
import { openConsole, untilLoaded, visit } from "../support/console/open-console.ts";
import { screenshot } from "../support/console/screenshots.ts";
import { seedOfRun } from "../support/console/seed.ts";
import { useConsole } from "../support/console/use-console.ts";

/** What is known of a namespace that is not a suspicion of its keys. */
const OTHERS: readonly KeyDefect[] = [KeyDefect.REPEATS_AFTER_EXPIRY, KeyDefect.RANDOM_ORDER];

describeInBrowser("The screen Key quality", () => {
  const { server } = useConsole();

  test("shows each suspicion with its advice, evidence and records, and what can't be said yet", async () => {
    const { adminKey } = seedOfRun();
    const { namespaces } = await connectAdmin(server, adminKey).getKeyQuality({});
    const suspected = namespaces.filter(({ suspicions }) =>
      suspicions.some(({ defect }) => !OTHERS.includes(defect)),
    );
    const retried = suspected.find(({ suspicions }) =>
      suspicions.some(({ defect }) => defect === KeyDefect.NEW_KEY_PER_RETRY),
    );
    const suspicion = retried?.suspicions.find(({ defect }) => defect === KeyDefect.NEW_KEY_PER_RETRY);
    if (retried === undefined || suspicion === undefined)
      throw new Error("the traffic has a suspected namespace");
    const page = await openConsole(server, { key: adminKey, path: "/key-quality" });
    await screenshot(page, "key-quality");
    const headings = await page.getByRole("heading", { level: 2 }).allInnerTexts();
    expect(headings.slice(0, suspected.length)).toEqual(suspected.map(({ namespace }) => namespace));
    expect(await page.getByText("Suspected", { exact: true }).count()).toBe(suspected.length);
    const unsuspected = namespaces.filter((each) => !suspected.includes(each));
    const last = page.getByRole("table").last();
    for (const { namespace } of unsuspected) await last.getByRole("rowheader", { name: namespace }).waitFor();
    // Late duplicates are a finding about the retention: Home counts the same namespaces as this screen.
    const [{ namespace: other } = { namespace: "?" }] = unsuspected;
    const retention = last.getByRole("row").filter({ hasText: other }).getByRole("link");
    expect(await retention.getAttribute("href")).toBe(`/console/namespaces/${other}`);
    await visit(page, "/");
    const check = page.getByRole("row").filter({ hasText: "Suspicious keys" });
    expect(await check.innerText()).toMatch(new RegExp(`\\s${suspected.length} namespaces?\\s`));
    await visit(page, "/key-quality");

    await page.getByRole("textbox", { name: "Namespace" }).fill(retried.namespace);
    await page.getByRole("button", { name: "Filter" }).click();
    await expect.poll(() => page.getByRole("heading", { level: 2 }).count()).toBe(1);
    await untilLoaded(page);
    expect(new URL(page.url()).search).toBe(`?namespace=${retried.namespace}`);
    const article = page.getByRole("article").filter({ hasText: "A new key for each retry" });
    await article.getByText(suspicion.advice).waitFor();
    await article.getByText("All counts, with intervals").click();
    const evidence = await article.getByRole("table").first().getByRole("rowheader").count();
    expect(evidence).toBe(suspicion.evidence.length);
    await article
      .getByRole("cell", { name: /% to .*%/ })
      .first()
      .waitFor();
    await expectAccessible(page);

    const [example] = suspicion.examples;
    await article.getByRole("link", { name: example?.key ?? "?" }).click();
    await untilLoaded(page);
    const path = new URL(page.url()).pathname;
    expect(path).toBe(`/console/records/${retried.namespace}/${encodeURIComponent(example?.key ?? "")}`);
  });
});
