import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import { connectAdmin } from "../support/calls/admin.ts";
import { describeInBrowser, openContext } from "../support/console/chromium.ts";
import { openConsole, originOf, signIn } from "../support/console/open-console.ts";
import { seedOfRun } from "../support/console/seed.ts";
import { useConsole } from "../support/console/use-console.ts";

/** Starts a page of another origin, whose scripts and forms a test adds: on the same site, and on another one. */
async function startForeignSite() {
  const server = createServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/html" });
    response.end('<!doctype html><html lang="en"><title>Foreign</title><body>');
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  // Cookies ignore ports, so that browsers send SameSite cookies from the first.
  return { sameSite: `http://127.0.0.1:${port}`, crossSite: `http://localhost:${port}` };
}

const CREATE_NAMESPACE = "/onceward.v1.TenantAdminService/UpdateNamespace";

function declaring(name: string): string {
  return JSON.stringify({ namespace: { name }, allowMissing: true });
}

interface Sent {
  readonly method?: "DELETE";
  readonly mode?: "no-cors";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: null;
}

/** Sends a POST by a script of the page. Returns its status; 0: the page may not see it, or it was not sent. */
function send(page: Page, url: string, body: string, init: Sent = {}): Promise<number> {
  return page.evaluate(
    async ([url, body, init]) => {
      const options = { method: "POST", body, credentials: "include", ...init } as const;
      const answer = await fetch(url, options).catch(() => undefined);
      return answer?.status ?? 0;
    },
    [url, body, init] as const,
  );
}

/** Posts a form, as any page can without a script: the body is a JSON text with an equals sign. */
async function postForm(page: Page, url: string, json: string): Promise<void> {
  const answered = page.context().waitForEvent("response", (response) => response.url() === url);
  await page.evaluate(
    ([url, json]) => {
      const form = document.createElement("form");
      Object.assign(form, { method: "post", action: url, enctype: "text/plain", target: "_blank" });
      const field = document.createElement("input");
      Object.assign(field, { type: "hidden", name: `${json.slice(0, -1)},"ignored":"`, value: '"}' });
      form.append(field);
      document.body.append(form);
      form.submit();
    },
    [url, json] as const,
  );
  await answered;
}

describeInBrowser("A page of another origin", () => {
  const { server, administeredTenant } = useConsole();

  async function namespaceNames(): Promise<readonly string[]> {
    const { namespaces } = await connectAdmin(server, seedOfRun().adminKey).listNamespaces({ pageSize: 100 });
    return namespaces.map(({ name }) => name);
  }

  /** Opens a page of another origin in a browser that is signed in to the console. */
  async function openForeignPage(site: string, apiKey: string): Promise<Page> {
    const context = await openContext();
    await signIn(context, server, apiKey);
    const page = await context.newPage();
    await page.goto(site);
    return page;
  }

  test("cannot act with the session of a person who is signed in", async () => {
    const { adminKey } = seedOfRun();
    const origin = originOf(server);
    const foreign = await startForeignSite();
    const own = await openConsole(server, { key: adminKey });
    const connect = { headers: { "content-type": "application/json", "connect-protocol-version": "1" } };
    // The same request acts when the console's own page sends it.
    expect(await send(own, `${origin}${CREATE_NAMESPACE}`, declaring("by-console"), connect)).toBe(200);

    for (const [site, name] of [
      [foreign.sameSite, "by-same-site"],
      [foreign.crossSite, "by-cross-site"],
    ] as const) {
      const page = await openForeignPage(site, adminKey);
      const url = `${origin}${CREATE_NAMESPACE}`;
      const body = declaring(name);
      expect(await send(page, url, body, connect)).toBe(0);
      expect(await send(page, url, body, { headers: { "content-type": "application/json" } })).toBe(0);
      await send(page, url, body, { mode: "no-cors" });
      await send(page, url, body, { mode: "no-cors", headers: { "content-type": "text/plain" } });
      await postForm(page, url, body);
      const get = new URLSearchParams({ connect: "v1", encoding: "json", message: body });
      await send(page, `${url}?${get}`, "", { mode: "no-cors" });
    }
    expect(await namespaceNames()).toContain("by-console");
    expect((await namespaceNames()).filter((name) => name.endsWith("-site"))).toEqual([]);
  });

  test("cannot sign a person in under another key, or out", async () => {
    const { adminKey } = seedOfRun();
    const origin = originOf(server);
    const { adminKey: foreignKey } = await administeredTenant();
    const foreign = await startForeignSite();
    const page = await openForeignPage(foreign.sameSite, adminKey);
    const cookies = await page.context().cookies(origin);
    expect(cookies).toHaveLength(1);

    const session = `${origin}/console/api/session`;
    const body = JSON.stringify({ apiKey: foreignKey });
    expect(await send(page, session, body, { headers: { "content-type": "application/json" } })).toBe(0);
    await send(page, session, body, { mode: "no-cors" });
    await postForm(page, session, body);
    expect(await send(page, session, "", { method: "DELETE", body: null })).toBe(0);
    expect(await send(page, `${session}s`, "", { method: "DELETE", body: null })).toBe(0);
    await postForm(page, `${session}s`, "{}");

    expect(await page.context().cookies(origin)).toEqual(cookies);
    const own = await openConsole(server, { key: adminKey });
    await own.getByRole("banner").getByText(seedOfRun().tenant, { exact: true }).waitFor();
  });

  test("cannot show the console in a frame", async () => {
    const foreign = await startForeignSite();
    const page = await openForeignPage(foreign.sameSite, seedOfRun().adminKey);
    const refused = page.waitForEvent("console", (message) => message.text().includes("frame-ancestors"));
    await page.evaluate(
      (url) => {
        const frame = document.createElement("iframe");
        frame.src = url;
        document.body.append(frame);
      },
      `${originOf(server)}/console/`,
    );
    await refused;
    const [, frame] = page.frames();
    expect(frame?.url()).not.toContain("/console/");
  });

  test("a call with an Authorization header acts with that credential, also beside a cookie", async () => {
    const { adminKey, tenant } = seedOfRun();
    const { tenant: other, adminKey: otherKey } = await administeredTenant();
    const page = await openConsole(server, { key: adminKey });
    const whoAmI = (authorization?: string) =>
      page.evaluate(async (authorization) => {
        const answer = await fetch("/onceward.v1.IdentityService/WhoAmI", {
          method: "POST",
          body: "{}",
          headers: {
            "content-type": "application/json",
            "connect-protocol-version": "1",
            ...(authorization && { authorization }),
          },
        });
        return (await answer.json()).tenant as string;
      }, authorization);
    expect(await whoAmI()).toBe(tenant);
    expect(await whoAmI(`Bearer ${otherKey}`)).toBe(other.name);
  });
});
