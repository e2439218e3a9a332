import { expect, test } from "vitest";
import { RecordJob_State } from "../../clients/typescript/src/gen/onceward/v1/tenant_pb.ts";
import { grant, seconds } from "../support/calls/verbs.ts";
import { expectAccessible } from "../support/console/accessibility.ts";
import { describeInBrowser } from "../support/console/chromium.ts";
import { expectFits } from "../support/console/layout.ts";
import { openConsole, untilLoaded, visit } from "../support/console/open-console.ts";
import { screenshot } from "../support/console/screenshots.ts";
import { useConsole } from "../support/console/use-console.ts";

describeInBrowser("The background jobs", () => {
  const { server, administeredTenant } = useConsole();

  test("are shown with their progress, followed, and cancelled", async () => {
    const { adminKey, admin, caller } = await administeredTenant();
    const page = await openConsole(server, {
      ...{ key: adminKey, path: "/jobs" },
      allowed: { statuses: [404] },
    });
    const main = page.getByRole("main");
    expect(await main.innerText()).toMatch(/No background changes yet\..*onceward jobs list/s);

    await grant(caller);
    // A job waits until every replica has the new policy; time for a person to cancel it.
    const { job } = await admin.updateTenant({
      tenant: { policy: { keyRetention: seconds(7_200) } },
      updateMask: { paths: ["policy.key_retention"] },
      applyToExisting: true,
    });
    const row = page.getByRole("row").filter({ hasText: "Apply a new retention" });
    // The list refreshes itself.
    await expect.poll(() => row.innerText()).toMatch(/all\s+waiting\s+not started/);
    const link = page.getByRole("navigation").getByRole("link", { name: /^Jobs/ });
    await expect.poll(() => link.innerText()).toMatch(/^Jobs\s+1$/);
    await expectAccessible(page);
    await screenshot(page, "jobs-waiting");
    await row.getByRole("button", { name: `Cancel job ${job?.id}` }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Cancel the job" }).click();
    // The dialog is a part of the row, and speaks of a cancelled job itself.
    await expect.poll(() => dialog.count()).toBe(0);
    await expect.poll(() => row.innerText()).toContain("cancelled");
    await expect
      .poll(() => page.getByRole("status").allInnerTexts())
      .toContainEqual(expect.stringContaining(`Job ${job?.id} is cancelled`));
    await expect.poll(() => link.innerText()).toBe("Jobs");
    expect((await admin.getRecordJob({ id: job?.id ?? 0n })).job?.state).toBe(RecordJob_State.CANCELLED);
    await expect.poll(() => row.getByRole("button").count()).toBe(0);

    await row.getByRole("link").click();
    await untilLoaded(page);
    expect(await page.getByRole("heading", { level: 1 }).innerText()).toBe(`Job ${job?.id}`);
    expect(await main.innerText()).toMatch(/cancelled.*onceward jobs show \d+ --watch/s);
    await expectAccessible(page);
    await expectFits(page, 320);
    await visit(page, "/jobs/999999");
    await expect.poll(() => main.innerText()).toContain("There is no such job");
    await visit(page, "/jobs/1e9");
    expect(await main.innerText()).toContain("There is no such job");
  });
});
