import { ApiKey_Role } from "@onceward/client/admin";
import { expect, test } from "vitest";
import { connectAdmin } from "../support/calls/admin.ts";
import { expectAccessible } from "../support/console/accessibility.ts";
import { describeInBrowser } from "../support/console/chromium.ts";
import { expectFits } from "../support/console/layout.ts";
import { openConsole, untilLoaded, visit } from "../support/console/open-console.ts";
import { screenshot } from "../support/console/screenshots.ts";
import { seedOfRun } from "../support/console/seed.ts";
import { useConsole } from "../support/console/use-console.ts";
import { partsOf } from "../support/servers/tenants.ts";

describeInBrowser("The screen API keys", () => {
  const { server, database } = useConsole();

  test("creates a key, and shows its secret once", async () => {
    const { adminKey } = seedOfRun();
    const page = await openConsole(server, { key: adminKey, path: "/api-keys" });
    await page.getByRole("button", { name: "Create a key" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Role").selectOption("Tenant admin");
    await dialog.getByLabel("Purpose").fill("on call");
    await dialog.getByLabel("Namespaces").fill("payments, payouts");
    await dialog.getByLabel("Expires").selectOption("In 30 days");
    await expectAccessible(page);
    await screenshot(page, "api-keys-create");
    await dialog.getByRole("button", { name: "Create the key" }).click();
    const secret = await page.getByText(/^ow_[a-z0-9]{16}_/).innerText();
    await expectAccessible(page);
    await screenshot(page, "api-keys-secret");

    // The secret is a key of what was asked, and the list says who created it.
    await connectAdmin(server, secret).getNamespace({ name: "payouts" });
    const { apiKeys } = await connectAdmin(server, adminKey).listApiKeys({});
    const [made] = apiKeys;
    expect(made).toMatchObject({ label: "on call", namespaces: ["payments", "payouts"] });
    expect(made?.role).toBe(ApiKey_Role.TENANT_ADMIN);
    const row = page.getByRole("row").filter({ hasText: made?.id ?? "?" });
    await row.getByText(`by ${partsOf(adminKey).id}`).waitFor();
    await row.getByText(/^in (29|30)d$/).waitFor();

    const kept = await page.evaluate(() =>
      JSON.stringify([location.href, history.state, { ...localStorage }, { ...sessionStorage }]),
    );
    expect(kept).not.toContain(secret);
    await visit(page, "/namespaces");
    await page.goBack();
    await untilLoaded(page);
    await page.getByRole("row").filter({ hasText: "on call" }).waitFor();
    expect(await page.content()).not.toContain(secret);
    await expectFits(page, 320);
  });

  test("rotates a key in steps, from the state of both keys", async () => {
    const { adminKey } = seedOfRun();
    const admin = connectAdmin(server, adminKey);
    const { apiKey: old } = await admin.createApiKey({
      apiKey: { role: ApiKey_Role.CALLER, label: "worker", namespaces: ["payments"] },
    });
    const id = old?.id ?? "";
    const page = await openConsole(server, { key: adminKey, path: "/api-keys" });
    await page.getByRole("link", { name: `Rotate ${id}` }).click();
    const current = page.locator("li[aria-current=step]");
    await current.getByRole("button", { name: "Create the successor" }).click();
    await page.getByText(/^ow_[a-z0-9]{16}_/).waitFor();
    await current.getByRole("heading", { name: "Give it to the callers" }).waitFor();
    await screenshot(page, "api-keys-rotation");
    const { apiKeys } = await admin.listApiKeys({});
    const successor = apiKeys[0];
    expect(successor).toMatchObject({ role: ApiKey_Role.CALLER, label: "worker", namespaces: ["payments"] });

    // Both are used in this hour; then only the successor.
    const useAt = (key: string, hours: number) =>
      database.query(
        "update api_keys set last_used_at = date_trunc('hour', now()) - make_interval(hours => $2) where id = $1",
        [key, hours],
      );
    await useAt(successor?.id ?? "", 0);
    await useAt(id, 0);
    await page.reload();
    await current.getByRole("heading", { name: /^Wait until/ }).waitFor();
    // The hour of the last use begins before the key was created.
    expect(await current.innerText()).toContain("The old key's last use: this hour.");
    await useAt(id, 3);
    await page.reload();
    await current.getByRole("heading", { name: "Revoke the old key" }).waitFor();
    await expectAccessible(page);
    await current.getByRole("button", { name: `Revoke ${id}` }).click();
    const dialog = page.getByRole("dialog");
    const revoke = dialog.getByRole("button", { name: "Revoke", exact: true });
    expect(await revoke.isDisabled()).toBe(true);
    await dialog.getByLabel(`Type ${id} to confirm`).fill(id);
    await revoke.click();
    await page.getByText(`Revoked key ${id}. Every replica refuses it within 10 s.`).waitFor();
    await page.getByText(/^Revoked (now|\d+ s ago)/).waitFor();
    const after = (await admin.listApiKeys({})).apiKeys;
    expect(after.find((key) => key.id === id)?.revokedAt).toBeDefined();
    expect(after.find((key) => key.id === successor?.id)?.revokedAt).toBeUndefined();
  });
});
