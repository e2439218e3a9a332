import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createWorld } from "../support/calls/admin.ts";
import { expectAccessible } from "../support/console/accessibility.ts";
import { describeInBrowser } from "../support/console/chromium.ts";
import { expectHarmless, hostileName } from "../support/console/hostile-texts.ts";
import { expectNoSidewaysScroll } from "../support/console/layout.ts";
import { forgetSession, openConsole, originOf, untilLoaded, visit } from "../support/console/open-console.ts";
import { screenshot } from "../support/console/screenshots.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { type OidcIssuer, startOidcIssuer } from "../support/oidc/issuer.ts";
import { startTestServer, type TestServer } from "../support/servers/server.ts";
import { partsOf } from "../support/servers/tenants.ts";

/** The page learns of the end of its session by an answer with this status. */
const ENDED = { statuses: [401] };
const LASTING = { clock: "movable", allowed: ENDED } as const;
/** A page that only lies open asks this often who is signed in. */
const CHECK_MS = 61_000;

describeInBrowser("The sign-in page", () => {
  let issuer: OidcIssuer;
  const database = useDatabase();
  let server: TestServer;

  beforeAll(async () => {
    issuer = await startOidcIssuer();
    // Credentials are cached shorter than in production, so that their end is seen sooner.
    server = await startTestServer(database.url, issuer.settings, { credentialAgeMs: 200 });
  });

  afterAll(async () => {
    await server?.stop();
    await issuer?.close();
  });

  async function newAdmin() {
    const { tenant, adminKey: key } = await createWorld(database, server).administeredTenant();
    return { tenant, key };
  }

  /** Expects the form, with a sentence that says why. */
  async function expectSignInPage(page: Page, why: RegExp): Promise<void> {
    await page.getByLabel("API key").waitFor();
    await page.getByRole("status").filter({ hasText: why }).waitFor();
  }

  test("exchanges an API key for a session whose cookie no script can read", async () => {
    const { tenant, key } = await newAdmin();
    const page = await openConsole(server, { path: "/audit?outcome=DENIED", allowed: ENDED });
    expect(page.url()).toBe(
      `${originOf(server)}/console/sign-in?return=${encodeURIComponent("/console/audit?outcome=DENIED")}`,
    );
    expect(await page.title()).toMatch(/^Sign in/);
    const field = page.getByLabel("API key");
    expect(await field.getAttribute("type")).toBe("password");
    expect(await field.getAttribute("autocomplete")).toBe("off");
    expect(await field.evaluate((input) => input === document.activeElement)).toBe(true);
    expect(await page.getByRole("main").innerText()).toContain(".onceward/admin.key");
    await expectAccessible(page);
    await expectNoSidewaysScroll(page);
    await screenshot(page, "sign-in");

    const wrong = key.replace(/.{4}$/, "AAAA");
    await field.fill(wrong);
    await page.keyboard.press("Enter");
    await page.getByRole("alert").filter({ hasText: "unknown, expired or revoked" }).waitFor();
    await expectAccessible(page);

    await field.fill(key);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.waitForURL("**/console/audit?outcome=DENIED");
    await page.getByRole("banner").getByText(tenant.name, { exact: true }).waitFor();

    const [cookie, ...others] = await page.context().cookies();
    expect(others).toEqual([]);
    expect(cookie).toMatchObject({ name: "onceward-session", httpOnly: true, sameSite: "Lax", path: "/" });
    const readable = await page.evaluate(() =>
      JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }, document.body.innerHTML]),
    );
    const { secret } = partsOf(key);
    for (const text of [cookie?.value ?? "", secret, wrong]) expect(readable).not.toContain(text);
  });

  test("returns when the key is revoked, and says why", async () => {
    const { key } = await newAdmin();
    const other = await newAdmin();
    const page = await openConsole(server, { key, ...LASTING });
    await database.query("update api_keys set revoked_at = now() where id = $1", [partsOf(key).id]);
    await page.clock.runFor(CHECK_MS);
    await expectSignInPage(page, /session has ended/i);

    await page.getByLabel("API key").fill(other.key);
    await page.keyboard.press("Enter");
    await page.getByRole("banner").getByText(other.tenant.name, { exact: true }).waitFor();
    await untilLoaded(page);
  });

  test("returns when the session expires", async () => {
    const { key } = await newAdmin();
    const page = await openConsole(server, { key, ...LASTING });
    await database.query("update console_sessions set ends_at = now() where actor = $1", [partsOf(key).id]);
    await page.clock.runFor(CHECK_MS);
    await expectSignInPage(page, /session has ended/i);
    // A new load knows only that the browser's cookie is of no session.
    await page.goto("/console/audit");
    await expectSignInPage(page, /session has ended/i);
    await page.context().clearCookies();
    await page.goto("/console/audit");
    await page.getByLabel("API key").waitFor();
    expect(await page.getByRole("status").count()).toBe(0);
  });

  test("returns after a sign-out, after which nothing is shown by the back button", async () => {
    const { key, tenant } = await newAdmin();
    const page = await openConsole(server, { key, ...LASTING });
    await visit(page, "/audit");
    await page.getByRole("button", { name: "Menu" }).click();
    await page.getByRole("button", { name: "Sign out", exact: true }).click();
    await expectSignInPage(page, /signed out/i);
    expect(await page.context().cookies()).toEqual([]);
    await page.goBack();
    await page.getByLabel("API key").waitFor();
    await page.reload();
    await page.getByLabel("API key").waitFor();
    expect(await page.content()).not.toContain(tenant.name);
  });

  test("returns in every browser after a sign-out everywhere", async () => {
    const { key } = await newAdmin();
    const first = await openConsole(server, { key, ...LASTING });
    forgetSession(server, key);
    const second = await openConsole(server, { key, ...LASTING });
    await first.getByRole("button", { name: "Menu" }).click();
    await first.getByRole("button", { name: "Sign out everywhere…" }).click();
    await first.getByRole("dialog").getByRole("button", { name: "Sign out everywhere" }).click();
    await expectSignInPage(first, /signed out/i);
    await second.clock.runFor(CHECK_MS);
    await expectSignInPage(second, /session has ended/i);
  });

  test("leads to the issuer and back to the screen, and says why if that fails", async () => {
    const { tenant } = await newAdmin();
    const page = await openConsole(server, {
      path: `/sign-in?return=${encodeURIComponent("/console/audit?actor=x")}`,
      allowed: { origins: [issuer.url] },
    });
    const issuerLink = page.getByRole("link", { name: /^Sign in with/ });
    issuer.answer = (path) => (path === "/token" ? { status: 503 } : undefined);
    await issuerLink.click();
    await page.getByRole("status").filter({ hasText: "issuer does not answer" }).waitFor();

    issuer.answer = undefined;
    // Its claims name no tenant.
    issuer.person = { sub: "somebody" };
    await issuerLink.click();
    await page.getByRole("status").filter({ hasText: "answer was not accepted" }).waitFor();

    const sub = hostileName("actor");
    issuer.person = { sub, onceward_tenant: tenant.name, onceward_role: "TENANT_ADMIN" };
    await issuerLink.click();
    await page.getByRole("banner").getByText(tenant.name, { exact: true }).waitFor();
    await expectHarmless(page, "actor");
    expect(new URL(page.url()).pathname).toBe("/console/audit");
    const [cookie, ...others] = await page.context().cookies();
    expect(others).toEqual([]);
    expect(cookie).toMatchObject({ name: "onceward-session", httpOnly: true, sameSite: "Lax" });
  });
});
