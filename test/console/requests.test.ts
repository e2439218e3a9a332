import type { Page, Request } from "playwright-core";
import { expect, test } from "vitest";
import { describeInBrowser } from "../support/console/chromium.ts";
import { openConsole } from "../support/console/open-console.ts";
import { routesOf } from "../support/console/routes.ts";
import { seedOfRun } from "../support/console/seed.ts";
import { useConsole } from "../support/console/use-console.ts";

/** Addresses that a person or a script can write, beside those of the routes. */
const TYPED_PATHS = {
  adminKey: [
    "/records?after=48h",
    "/records?after=2026-01-01&before=1%20min",
    "/records?after=nonsense",
    "/records?q=nonsense",
    "/ambiguous?before=24h&checkpoint=nonsense",
    "/audit?after=7d&before=1h",
    "/retention/webhooks?target=nonsense",
  ],
  operatorKey: ["/audit?after=48h"],
} as const;
const OBSERVED_MS = 10_000;
/** Home makes 11 calls when it is opened, and repeats six calls in this time. */
const MAX_CALLS = 22;
/** So many answers of the server without a call of the page, and the page is at rest. */
const QUIET_ANSWERS = 10;

/** The calls of a page: those that it began, and those of them that are not answered. */
interface Calls {
  readonly begun: string[];
  readonly open: Set<Request>;
}

function observeCalls(page: Page): Calls {
  const calls: Calls = { begun: [], open: new Set() };
  page.on("request", (request) => {
    calls.begun.push(request.url());
    calls.open.add(request);
  });
  for (const event of ["requestfinished", "requestfailed"] as const) {
    // The types of the two events differ, though their listeners do not.
    page.on(event as "requestfinished", (request) => void calls.open.delete(request));
  }
  // Chromium may report no end of a call that an address after it has cut off.
  page.on("framenavigated", () => calls.open.clear());
  return calls;
}

/** Waits until a page makes no call while the server answers others, or has made more than it may. */
async function untilQuiet(page: Page, calls: Calls): Promise<void> {
  for (let quiet = 0; quiet < QUIET_ANSWERS && calls.begun.length <= MAX_CALLS; ) {
    const before = calls.begun.length;
    await page.request.get("/console/");
    quiet = calls.open.size === 0 && calls.begun.length === before ? quiet + 1 : 0;
  }
}

describeInBrowser("A screen that lies open", () => {
  const { server } = useConsole();

  test.each(["adminKey", "operatorKey"] as const)(
    "makes few calls in ten seconds, at any address (%s)",
    async (role) => {
      const paths = routesOf(seedOfRun()).flatMap((route) => (route.role === role ? [route.path] : []));
      const key = seedOfRun()[role];
      const page = await openConsole(server, { key, path: "/no-screen", clock: "movable" });
      const calls = observeCalls(page);
      const excessive: string[] = [];
      for (const path of [...paths, ...TYPED_PATHS[role]]) {
        await page.goto(`/console${path}`);
        await page.getByRole("heading", { level: 1 }).waitFor();
        calls.begun.length = 0;
        await untilQuiet(page, calls);
        await page.clock.runFor(OBSERVED_MS);
        await untilQuiet(page, calls);
        if (calls.begun.length > MAX_CALLS) excessive.push(path);
      }
      expect(excessive).toEqual([]);
    },
  );
});
