import { readFile, stat } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { GROUPS } from "../../deploy/site/pages.ts";
import { expectAccessible } from "../support/console/accessibility.ts";
import { describeInBrowser, openContext } from "../support/console/chromium.ts";

const DIST = fileURLToPath(new URL("../../deploy/site/dist", import.meta.url));
const PAGES = GROUPS.flatMap(({ pages }) => pages);
const FIRST_LOAD_BYTES = 150 * 1024;
const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".png": "image/png",
};

let server: Server;
/** The folder of the web server that the site was built for, such as `/` or `/onceward/`. */
let base: string;
/** The address of the site's first page, without the last slash. */
let url: string;
/** What the server has sent, compressed as a web server would. */
let sentBytes = 0;

beforeAll(async () => {
  const firstPage = await readFile(join(DIST, "index.html"), "utf8").catch((cause: unknown) => {
    throw new Error("The site is not built: run npm run docs", { cause });
  });
  const [, builtFor] = firstPage.match(/src="([^"]*)assets\/app/) ?? [];
  if (builtFor === undefined) throw new Error("index.html does not name its program: run npm run docs");
  base = builtFor;
  server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://localhost");
    const file = fileOf(pathname);
    const path = file === "" ? "index.html" : extname(file) === "" ? `${file}.html` : file;
    readFile(join(DIST, path)).then(
      (body) => {
        sentBytes += extname(path) === ".png" ? body.length : gzipSync(body).length;
        response.setHeader("content-type", TYPES[extname(path)] ?? "text/plain").end(body);
      },
      () => response.writeHead(404).end(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${base.slice(0, -1)}`;
});
afterAll(() => server?.close());

/** Returns the path within the site of a path of the server; a path outside the site's folder leads to no file. */
function fileOf(pathname: string): string {
  return pathname.startsWith(base) ? pathname.slice(base.length) : "outside/the/site";
}

async function open(path: string): Promise<Page> {
  const page = await (await openContext({ colorScheme: "light" })).newPage();
  page.on("pageerror", (error) => expect.fail(`${path}: ${error}`));
  await page.goto(`${url}${path}`, { waitUntil: "networkidle" });
  return page;
}

describe("the pages for programs", () => {
  test("llms.txt lists every page, which is there as Markdown", async () => {
    const list = await readFile(join(DIST, "llms.txt"), "utf8");
    for (const { slug } of PAGES) {
      expect(list).toContain(`(${base}${slug}.md)`);
      expect(await readFile(join(DIST, `${slug}.md`), "utf8")).toMatch(/^# /m);
    }
  });

  test("no page shows a diagram as code", async () => {
    for (const { slug } of PAGES) {
      expect(await readFile(join(DIST, `${slug}.html`), "utf8"), slug).not.toContain("language-mermaid");
    }
  });

  test("their links and pictures lead to files of the site", async () => {
    for (const { slug } of PAGES) {
      const text = await readFile(join(DIST, `${slug}.md`), "utf8");
      for (const [, target = ""] of text.matchAll(/(?:\]\(|src(?:set)?=")(\/[^)#"\s]*)/g)) {
        expect(extname(target), `${slug}.md: ${target}`).not.toBe("");
        await stat(join(DIST, fileOf(target)));
      }
    }
  });
});

describeInBrowser("the site", () => {
  test("the first page sends at most 150 KB", async () => {
    sentBytes = 0;
    await open("/");
    expect(sentBytes).toBeLessThanOrEqual(FIRST_LOAD_BYTES);
  });

  test.each(PAGES.map(({ slug, title }) => [slug, title]))(
    "/%s opens, and axe finds nothing",
    async (slug, title) => {
      const page = await open(slug === "index" ? "/" : `/${slug}`);
      expect(await page.locator("h1").count(), title).toBe(1);
      await expectAccessible(page);
    },
  );

  test("the diagrams are pictures in the page's colours, whose labels do not cover each other", async () => {
    const page = await open("/architecture");
    const foreign: string[] = [];
    page.on("request", (request) => {
      if (!request.url().startsWith(url)) foreign.push(request.url());
    });
    await page.reload({ waitUntil: "networkidle" });
    expect(foreign).toEqual([]);
    const source = await readFile(join(DIST, "architecture.md"), "utf8");
    const drawings = page.locator("figure.diagram svg");
    expect(await drawings.count()).toBe(source.match(/^```mermaid$/gm)?.length);
    for (const drawing of await drawings.all()) {
      const { labels, covered } = await drawing.evaluate((svg) => {
        const boxes = [...svg.querySelectorAll("text")].map((text) => ({
          label: text.textContent,
          box: text.getBoundingClientRect(),
        }));
        return {
          labels: boxes.length,
          covered: boxes.flatMap((one, index) =>
            boxes
              .slice(index + 1)
              .filter(
                ({ box }) =>
                  box.left < one.box.right &&
                  one.box.left < box.right &&
                  box.top < one.box.bottom &&
                  one.box.top < box.bottom,
              )
              .map((other) => [one.label, other.label]),
          ),
        };
      });
      expect(labels).toBeGreaterThan(5);
      expect(covered).toEqual([]);
    }
    const colour = () =>
      drawings
        .first()
        .locator("text")
        .first()
        .evaluate((text) => getComputedStyle(text).fill);
    const light = await colour();
    await page.emulateMedia({ colorScheme: "dark" });
    await expect.poll(colour).not.toBe(light);
  });

  test.each([
    ["pepper_wrong", /\/runbook/],
    ["rotate a key", /\/tenant-admins#rotate-a-key$/],
  ])("the search finds %j first, and opens it", async (words, address) => {
    const page = await open("/");
    await page.getByRole("button", { name: "Search" }).first().click();
    await page
      .getByRole("searchbox")
      .or(page.locator("input[type=search], .search-input"))
      .first()
      .fill(words);
    await page.getByRole("option").first().click();
    await expect.poll(() => page.url()).toMatch(address);
  });

  test("the same code in several languages is tabs", async () => {
    const page = await open("/tutorial");
    const tabs = page.locator(".vp-code-group .tabs label");
    expect(await tabs.allTextContents()).toEqual(["TypeScript", "Python", "Go"]);
    await tabs.filter({ hasText: "Go" }).click();
    await expect.poll(() => page.getByText("package main").isVisible()).toBe(true);
  });

  test("the playground counts the effects of a crash by the policy", async () => {
    const page = await open("/playground");
    const effects = page.getByText("The customer was charged");
    await expect.poll(() => effects.textContent()).toMatch(/charged\s+2\s+times/);
    await page.getByLabel("HOLD").check();
    await expect.poll(() => effects.textContent()).toMatch(/charged\s+1\s+time\b/);
    expect(await page.getByRole("row").last().textContent()).toContain("ambiguous");
    await page.getByLabel(/process dies/).fill("1");
    await expect.poll(() => effects.textContent()).toMatch(/charged\s+0\s+times/);
  });
});
