import { type Browser, type BrowserContext, type BrowserContextOptions, chromium } from "playwright-core";
import { describe, inject, onTestFinished } from "vitest";

/** Only a browser that hangs reaches it. */
const ACTION_TIMEOUT_MS = 60_000;

let connected: Promise<Browser> | undefined;

/** Runs tests in a real browser; skips them where none is installed, which the setup prints. */
export function describeInBrowser(title: string, tests: () => void): void {
  describe.runIf(inject("browserEndpoint") !== "")(title, tests);
}

/** Opens a context without cookies, storage and cache. It ends with the test. */
export async function openContext(options: BrowserContextOptions = {}): Promise<BrowserContext> {
  connected ??= chromium.connect(inject("browserEndpoint"));
  const browser = await connected;
  const context = await browser.newContext({ locale: "en-GB", timezoneId: "UTC", ...options });
  context.setDefaultTimeout(ACTION_TIMEOUT_MS);
  onTestFinished(() => context.close());
  return context;
}
