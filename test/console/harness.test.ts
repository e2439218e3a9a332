import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { expectAccessible } from "../support/console/accessibility.ts";
import { describeInBrowser, openContext } from "../support/console/chromium.ts";
import { expectNoShift, expectNoSidewaysScroll, observeShifts } from "../support/console/layout.ts";
import { collectProblems } from "../support/console/problems.ts";

const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src *; img-src *";

/** Serves a page with every defect that the helpers find. */
async function servePage(body: string, script: string): Promise<string> {
  const page = `<!doctype html><html lang="en"><title>Page</title><body>${body}<script src="/page.js"></script>`;
  const server = createServer(({ url = "" }, response) => {
    const isScript = url === "/page.js";
    const status = isScript || url === "/" ? 200 : 404;
    const type = isScript ? "text/javascript" : "text/html";
    response.writeHead(status, { "content-security-policy": POLICY, "content-type": type });
    response.end(isScript ? script : page);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describeInBrowser("The helpers of these tests", () => {
  test("find what goes wrong in a page", async () => {
    const origin = await servePage(
      `<script>document.title = "inline";</script><img src="/missing" alt="">`,
      `console.error("printed by the page");
       fetch("http://other.example/").catch(() => {});
       alert("a dialog");
       setTimeout(() => { throw new Error("uncaught by the page"); });`,
    );
    const context = await openContext();
    const problems = await collectProblems(context, origin);
    const page = await context.newPage();
    await page.goto(origin);

    const expected = [
      /^printed error: content security policy: script-src-elem by inline$/,
      /^printed error: printed by the page$/,
      /^request to http:\/\/other\.example\/$/,
      /^failed request to http:\/\/other\.example\/: net::ERR_/,
      /^a page opened a dialog of the browser: a dialog$/,
      /^uncaught error: Error: uncaught by the page/,
      /^answer 404 to GET .*\/missing$/,
    ];
    for (const pattern of expected) {
      await expect
        .poll(() => problems.filter((problem) => pattern.test(problem)), { message: `${pattern}` })
        .toHaveLength(1);
    }
  });

  test("find what is inaccessible, moves, or is too wide", async () => {
    const origin = await servePage(
      `<h1>Page</h1><img src="/missing"><div id="wide"></div><p>Moved</p>`,
      `requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => {
         const { style } = document.getElementById("wide");
         style.width = "3000px";
         style.height = "200px";
         document.title = "grown";
       })));`,
    );
    const context = await openContext();
    await context.addInitScript(observeShifts);
    const page = await context.newPage();
    await page.goto(origin);
    await page.waitForFunction(() => document.title === "grown");

    await expect(expectAccessible(page)).rejects.toThrow(/image-alt/);
    await expect(expectNoSidewaysScroll(page)).rejects.toThrow(/id=\\?"wide/);
    await expect.poll(() => expectNoShift(page).then(String, String)).toMatch(/<p>Moved/);
  });
});
