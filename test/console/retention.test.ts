import { expect, test } from "vitest";
import { connectAdmin } from "../helpers/calls/admin.ts";
import { expectAccessible } from "../helpers/console/accessibility.ts";
import { describeInBrowser } from "../helpers/console/chromium.ts";
import { openConsole, untilLoaded } from "../helpers/console/open-console.ts";
import { screenshot } from "../helpers/console/screenshots.ts";
import { seedOfRun } from "../helpers/console/seed.ts";
import { useConsole } from "../helpers/console/use-console.ts";

const HOUR_S = 3600n;
const DAY_S = 24n * HOUR_S;

describeInBrowser("The screen Retention", () => {
  const { server, database } = useConsole();

  const ownRetention = async (name: string) => {
    const { namespace } = await connectAdmin(server, seedOfRun().adminKey).getNamespace({ name });
    return namespace?.policy?.keyRetention?.seconds;
  };

  test("names the namespace that is too short, moves the line, and changes the retention after a preview", async () => {
    const { adminKey } = seedOfRun();
    const page = await openConsole(server, { key: adminKey, path: "/retention" });
    const row = page.getByRole("row").filter({ hasText: "webhooks" });
    expect(await row.innerText()).toMatch(
      /1 d.*Too short.*duplicates a month come later, and take effect a second time/s,
    );
    await page.getByRole("link", { name: "webhooks" }).click();
    await untilLoaded(page);

    const line = page.getByRole("slider", { name: "Proposed key retention" });
    const shownMs = async () => Number(await line.getAttribute("aria-valuenow"));
    const todayMs = await shownMs();
    await line.focus();
    await page.keyboard.press("ArrowRight");
    expect(await shownMs()).toBeGreaterThan(todayMs);
    await page.keyboard.press("Home");
    expect(await shownMs()).toBeLessThan(todayMs);
    const picture = await page.getByRole("group", { name: /Duplicates a month/ }).boundingBox();
    if (picture === null) throw new Error("the picture has no place");
    await page.mouse.move(picture.x + picture.width / 3, picture.y + 60);
    await page.mouse.down();
    await page.mouse.move(picture.x + picture.width - 30, picture.y + 60, { steps: 4 });
    await page.mouse.up();
    expect(await shownMs()).toBeGreaterThan(todayMs);
    await expectAccessible(page);

    // What is typed moves the line, the table and the command.
    const field = page.getByRole("textbox", { name: "Proposed key retention" });
    await field.fill("500d");
    await page.getByText("From 1m to 400d").waitFor();
    await field.fill("2d");
    expect(await shownMs()).toBe(2 * 86_400_000);
    await page.getByRole("columnheader", { name: "Proposed, 2 d" }).waitFor();
    await page.getByText("--key 48h").waitFor();
    expect(await field.inputValue()).toBe("2d");

    const answer = page.getByRole("region", { name: "Is the retention long enough?" });
    expect(await answer.innerText()).toMatch(
      /^Too short: 1 d\s+About [\d,]+ duplicates a month come later, and take effect a second time/,
    );
    await field.fill("4d");
    await page.getByRole("button", { name: "Preview the change" }).click();
    const dialog = page.getByRole("dialog");
    expect(await dialog.getByRole("row").filter({ hasText: "Key retention" }).innerText()).toMatch(
      /1 d\s+4 d/,
    );
    expect(new URL(page.url()).searchParams.get("to")).toBe("4d");
    expect(await ownRetention("webhooks")).toBe(DAY_S);
    // A longer retention loses nothing: no name is typed, and it is for the stored records, too.
    const existing = dialog.getByLabel(/Also for the [\d,]+ stored records \(none is forgotten\)/);
    expect(await existing.isChecked()).toBe(true);
    await expectAccessible(page);
    await dialog.getByRole("button", { name: "Change to 4 d" }).click();
    await expect.poll(() => dialog.count()).toBe(0);

    expect(await ownRetention("webhooks")).toBe(4n * DAY_S);
    const { jobs } = await connectAdmin(server, adminKey).listRecordJobs({});
    expect(jobs[0]).toMatchObject({ namespace: "webhooks" });
    await page.getByText(`Job ${jobs[0]?.id}`).waitFor();
    await page.getByRole("status").filter({ hasText: "The retention of webhooks is changed" }).waitFor();
    await page.getByText("4 d is set by this namespace itself").waitFor();
    await expect.poll(() => answer.innerText()).toMatch(/^Too early to say: 4 d\s+\d+ more days? of traffic/);
  });

  test("advises in a sentence, and its button opens the preview of the advice", async () => {
    const { adminKey } = seedOfRun();
    const page = await openConsole(server, { key: adminKey, path: "/retention/orders?target=10000" });
    const answer = page.getByRole("region", { name: "Is the retention long enough?" });
    expect(await answer.innerText()).toMatch(/^Longer than needed: 1 d\s.* would be long enough/s);
    const use = answer.getByRole("button", { name: /^Use / });
    const retention = (await use.innerText()).slice("Use ".length);
    await use.click();
    const dialog = page.getByRole("dialog");
    const row = dialog.getByRole("row").filter({ hasText: "Key retention" });
    expect(await row.innerText()).toContain(retention);
    // A shorter retention forgets keys: it is for later claims, and the name is typed.
    expect(await dialog.getByLabel(/Also for the/).isChecked()).toBe(false);
    await dialog.getByLabel("Type orders to confirm").waitFor();
    expect(await ownRetention("orders")).toBe(DAY_S);
    await expectAccessible(page);
    await screenshot(page, "retention-advised");
  });

  test("counts repeats that came after their key was forgotten", async () => {
    const { adminKey, tenant } = seedOfRun();
    await database.query(
      `update usage_hours set late_keys_refused = 3, late_keys_granted = 2
       where namespace = 'payments' and hour = (select max(hour) from usage_hours where namespace = 'payments')
         and tenant_id = (select id from tenants where name = $1)`,
      [tenant],
    );
    const page = await openConsole(server, { key: adminKey, path: "/retention/payments" });
    await page
      .getByText(/^Counted in the last 30 days: 3 repeats refused .* and 2 that ran although it was\./)
      .waitFor();
    await expectAccessible(page);
    await page.getByRole("link", { name: "The namespace's policy" }).click();
    await untilLoaded(page);
    expect(new URL(page.url()).pathname).toBe("/console/namespaces/payments");
  });

  test("tells both values when another administrator was faster, and changes nothing", async () => {
    const { adminKey } = seedOfRun();
    const page = await openConsole(server, {
      ...{ key: adminKey, path: "/retention/payments?to=3d" },
      allowed: { statuses: [409] },
    });
    await page.getByRole("button", { name: "Preview the change" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("table").waitFor();
    await connectAdmin(server, adminKey).updateNamespace({
      namespace: { name: "payments", policy: { keyRetention: { seconds: 12n * HOUR_S } } },
      updateMask: { paths: ["policy.key_retention"] },
    });
    await dialog.getByRole("button", { name: "Change to 3 d" }).click();
    const conflict = page.getByRole("alert").filter({ hasText: "another administrator" });
    expect(await conflict.innerText()).toMatch(/was 6 h when you looked, and is 12 h now. You proposed 3 d/);
    expect(await ownRetention("payments")).toBe(12n * HOUR_S);

    await page.getByRole("button", { name: "Follow the tenant's retention" }).click();
    await dialog.getByRole("button", { name: "Follow the tenant's" }).click();
    await page.getByText("3 d is the service's default").waitFor();
    expect(await ownRetention("payments")).toBeUndefined();
    expect(await conflict.count()).toBe(0);
  });

  test("declares a namespace that followed the tenant's policy", async () => {
    const page = await openConsole(server, {
      ...{ key: seedOfRun().adminKey, path: "/retention/paymnets?to=1d" },
      allowed: { statuses: [404] },
    });
    await page.getByText("This namespace has no policy of its own").waitFor();
    await page.getByRole("button", { name: "Preview the change" }).click();
    const dialog = page.getByRole("dialog");
    expect(await dialog.getByRole("row").filter({ hasText: "Key retention" }).innerText()).toMatch(
      /3 d\s+1 d/,
    );
    await dialog.getByLabel("Type paymnets to confirm").fill("paymnets");
    await page.keyboard.press("Enter");
    await page.getByText("1 d is set by this namespace itself").waitFor();
    expect(await ownRetention("paymnets")).toBe(DAY_S);
  });
});
