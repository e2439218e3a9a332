import { durationMs } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { Policy_LateKeys } from "../../clients/typescript/src/gen/onceward/v1/policy_pb.ts";
import { connectAdmin } from "../support/calls/admin.ts";
import { expectAccessible } from "../support/console/accessibility.ts";
import { describeInBrowser } from "../support/console/chromium.ts";
import { expectFits } from "../support/console/layout.ts";
import { openConsole, untilLoaded, visit } from "../support/console/open-console.ts";
import { screenshot } from "../support/console/screenshots.ts";
import { seedOfRun } from "../support/console/seed.ts";
import { useConsole } from "../support/console/use-console.ts";

const HOUR_S = 3600n;

/** Presses the button of the form, and then the one of the dialog that asks. */
async function confirm(page: Page, action: string): Promise<void> {
  await page.getByRole("button", { name: action, exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: action, exact: true }).click();
  await dialog.waitFor({ state: "detached" });
}

describeInBrowser("The screens Namespaces and Tenant settings", () => {
  const { server } = useConsole();

  test("an undeclared namespace is found, declared, and deleted with its records", async () => {
    const { adminKey } = seedOfRun();
    const admin = connectAdmin(server, adminKey);
    // What the API answers for an undeclared namespace, and for a value beyond the limits.
    const page = await openConsole(server, {
      key: adminKey,
      path: "/namespaces",
      allowed: { statuses: [400, 404] },
    });
    await page.getByRole("link", { name: "Used, not declared" }).click();
    await page.getByRole("rowheader", { name: "paymnets" }).waitFor();
    expect(await page.getByRole("rowheader").allInnerTexts()).toEqual(["paymnets"]);
    // Wherever a person acts on a misspelt name, it says so.
    await page.getByRole("row").filter({ hasText: "paymnets" }).getByText("Similar to payments").waitFor();
    await screenshot(page, "namespaces-undeclared");
    await page.getByRole("link", { name: "paymnets" }).click();
    await page.getByText(": it follows the tenant's policy.").waitFor();
    const warning = page
      .getByRole("main")
      .getByText(/Similar to payments\s.*correct the name in the caller/s);
    expect(await warning.getByRole("link", { name: "payments" }).getAttribute("href")).toBe(
      "/console/namespaces/payments",
    );
    await expectFits(page, 320, "namespace-misspelt-narrow");

    await page.getByLabel("Key retention", { exact: true }).fill("soon");
    await page.getByRole("button", { name: "Declare" }).click();
    await page.getByText(/^It must be a duration/).waitFor();
    await page.getByLabel("Key retention", { exact: true }).fill("401d");
    await page.getByRole("button", { name: "Declare" }).click();
    await page.getByText("It must be 1m to 400d.").waitFor();
    await page.getByLabel("Key retention", { exact: true }).fill("48 h");
    await page.getByRole("button", { name: "Declare" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("row", { name: "Key retention 72h 48h" }).waitFor();
    await dialog.getByText("Similar to payments").waitFor();
    // What follows the key retention changes with it.
    await dialog.getByRole("row", { name: "Result retention 72h 48h" }).waitFor();
    // A shorter retention forgets keys: the name is typed.
    await dialog.getByLabel("Type paymnets to confirm").fill("paymnets");
    await expectAccessible(page);
    await screenshot(page, "namespace-review");
    await dialog.getByRole("button", { name: "Declare" }).click();
    await page.getByText("Saved the policy of the namespace paymnets.").waitFor();
    // Once it is declared, it is meant.
    await page.getByText("Similar to payments").waitFor({ state: "detached" });
    const { namespace } = await admin.getNamespace({ name: "paymnets" });
    expect(namespace?.policy?.keyRetention?.seconds).toBe(48n * HOUR_S);
    expect(namespace?.policy?.maxLease).toBeUndefined();

    await page.getByRole("button", { name: "Delete the namespace" }).click();
    await dialog.getByLabel("Type paymnets to confirm").fill("paymnets");
    await dialog.getByLabel(/^Forget the records/).check();
    await expectAccessible(page);
    await dialog.getByRole("button", { name: "Delete, and forget the records" }).click();
    await page.getByText(/^Deleted the namespace paymnets\. Job \d+ forgets its records\.$/).waitFor();
    await expect(admin.getNamespace({ name: "paymnets" })).rejects.toMatchObject({ code: Code.NotFound });
    const { jobs } = await admin.listRecordJobs({});
    expect(jobs.map(({ namespace: of }) => of)).toContain("paymnets");
    expect(await page.getByRole("heading", { level: 1 }).innerText()).toBe("Namespaces");
  });

  test("a change of another person is shown with both values, and what was typed stays", async () => {
    const { adminKey } = seedOfRun();
    const admin = connectAdmin(server, adminKey);
    // 409: what the API answers for an old etag.
    const page = await openConsole(server, {
      key: adminKey,
      path: "/namespaces/payments",
      allowed: { statuses: [409] },
    });
    await page.getByLabel("Max lease").fill("1h");
    await admin.updateNamespace({
      namespace: {
        name: "payments",
        policy: { maxLease: { seconds: HOUR_S / 2n }, defaultLease: { seconds: 60n } },
      },
    });
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("row", { name: "Max lease inherited 30m 1h" }).waitFor();
    await page.getByRole("row", { name: "Default lease inherited 1m not changed" }).waitFor();
    expect(await page.getByLabel("Max lease").inputValue()).toBe("1h");
    expect(await page.getByLabel("Default lease").inputValue()).toBe("1m");
    await expectAccessible(page);
    await screenshot(page, "namespace-conflict");
    await expectFits(page, 320, "namespace-conflict-narrow");
    await confirm(page, "Save");
    await page.getByText("Saved the policy of the namespace payments.").waitFor();
    const { namespace } = await admin.getNamespace({ name: "payments" });
    expect(namespace?.policy?.maxLease && durationMs(namespace.policy.maxLease)).toBe(3_600_000);
    expect(namespace?.policy?.defaultLease && durationMs(namespace.policy.defaultLease)).toBe(60_000);
  });

  test("a choice about too old keys is explained before it is saved, with its claims", async () => {
    const { adminKey } = seedOfRun();
    const admin = connectAdmin(server, adminKey);
    const page = await openConsole(server, { key: adminKey, path: "/namespaces/payments" });
    await page.getByLabel("Late keys").selectOption("require-time");
    await page.getByRole("button", { name: "Save" }).click();
    const dialog = page.getByRole("dialog");
    await dialog
      .getByText(/^A duplicate that comes after its key was forgotten is refused, and a person/)
      .waitFor();
    await dialog.getByText(/^Of [\d,]+ claims in the last 30 days, 0 were refused/).waitFor();
    await expectAccessible(page);
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved the policy of the namespace payments.").waitFor();
    const { namespace } = await admin.getNamespace({ name: "payments" });
    expect(namespace?.policy?.lateKeys).toBe(Policy_LateKeys.REQUIRE_TIME);
  });

  test("a field is inherited again, with the value of the tenant settings", async () => {
    const { adminKey } = seedOfRun();
    const admin = connectAdmin(server, adminKey);
    const page = await openConsole(server, { key: adminKey, path: "/namespaces/webhooks" });
    await page.getByRole("link", { name: "tenant settings" }).click();
    await untilLoaded(page);
    await page.getByLabel("Key retention", { exact: true }).fill("8d");
    await confirm(page, "Save");
    const { tenant } = await admin.getTenant({});
    expect(tenant?.policy?.keyRetention?.seconds).toBe(8n * 24n * HOUR_S);

    await visit(page, "/namespaces/webhooks");
    await page.getByRole("button", { name: "Inherit the key retention" }).click();
    await page.getByRole("button", { name: "Save" }).click();
    await page
      .getByRole("dialog")
      .getByRole("row", { name: /^Key retention .* 8d$/ })
      .waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved the policy of the namespace webhooks.").waitFor();
    const { namespace } = await admin.getNamespace({ name: "webhooks" });
    expect(namespace?.policy?.keyRetention).toBeUndefined();
    expect(namespace?.effectivePolicy?.keyRetention?.seconds).toBe(8n * 24n * HOUR_S);
  });

  test("what was typed outlives the session, and the browser asks before it is lost", async () => {
    const { adminKey } = seedOfRun();
    const page = await openConsole(server, {
      ...{ key: adminKey, path: "/namespaces/payments" },
      allowed: { statuses: [401] },
    });
    const asks = () =>
      page.evaluate(() => !window.dispatchEvent(new Event("beforeunload", { cancelable: true })));
    const field = page.getByLabel("Key retention", { exact: true });
    expect(await asks()).toBe(false);
    await field.fill("9d");
    expect(await asks()).toBe(true);

    // A refresh in the background would end the session before the button is pressed.
    await page.getByRole("button", { name: "Live" }).click();
    await page.getByRole("button", { name: "Paused" }).waitFor();
    await page.context().clearCookies();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByLabel("API key").fill(adminKey);
    await page.getByRole("button", { name: "Sign in" }).click();
    await untilLoaded(page);
    expect(await field.inputValue()).toBe("9d");
    await page.getByRole("button", { name: "Undo all" }).click();
    expect(await asks()).toBe(false);
    await page.reload();
    await untilLoaded(page);
    expect(await field.inputValue()).not.toBe("9d");
  });
});
