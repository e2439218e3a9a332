import type { BrowserContext, Page } from "playwright-core";
import { expect, onTestFinished } from "vitest";
import type { Addresses } from "../../../server/src/replica/server.ts";
import { openContext } from "./chromium.ts";
import { observeShifts } from "./layout.ts";
import { type Allowed, collectProblems } from "./problems.ts";

/** How a page of the console is opened. */
export interface ConsoleOptions {
  /** The API key to sign in with; undefined: no one is signed in. */
  readonly key?: string;
  /** The first page, below `/console`. */
  readonly path?: string;
  readonly colorScheme?: "light" | "dark";
  /** Of the viewport, in CSS pixels. */
  readonly width?: number;
  readonly height?: number;
  /** `movable`: the page's timers and time move by `page.clock`. */
  readonly clock?: "real" | "movable";
  /** What the test provokes on purpose. */
  readonly allowed?: Allowed;
}

/** The server whose console is opened. */
type Port = Pick<Addresses, "httpPort">;
type SessionCookie = Awaited<ReturnType<BrowserContext["cookies"]>>[number];

/** The sessions of this process by server and key: attempts to sign in are bounded. */
const sessions = new Map<string, Promise<readonly SessionCookie[]>>();

/** The origin of a server's console. */
export function originOf({ httpPort }: Port): string {
  return `http://127.0.0.1:${httpPort}`;
}

/**
 * Opens the console in a new context, signed in, and waits until the screen has loaded. The test fails if a page
 * of the context has a problem (see `collectProblems`).
 */
export async function openConsole(server: Port, options: ConsoleOptions = {}): Promise<Page> {
  const { key, path = "/", colorScheme = "light", width = 1280, height = 800, clock, allowed } = options;
  const origin = originOf(server);
  const context = await openContext({ baseURL: origin, colorScheme, viewport: { width, height } });
  const problems = await collectProblems(context, origin, allowed);
  await context.addInitScript(observeShifts);
  // Before the context ends: hooks run in reverse order.
  onTestFinished(async () => {
    // What a page printed arrives before its answer.
    await Promise.all(context.pages().map((page) => page.evaluate(() => 0).catch(() => {})));
    expect(problems, "problems of the page").toEqual([]);
  });
  if (key !== undefined) await signIn(context, server, key);
  if (clock === "movable") await context.clock.install();
  const page = await context.newPage();
  await page.goto(`/console${path}`);
  await untilLoaded(page);
  return page;
}

/** Gives a context the cookie of a session, as the form does; the key's first call signs in, others share its session. */
export async function signIn(context: BrowserContext, server: Port, apiKey: string): Promise<void> {
  const origin = originOf(server);
  const name = `${origin} ${apiKey}`;
  const session = sessions.get(name) ?? requestSession(context, origin, apiKey);
  sessions.set(name, session);
  await context.addCookies([...(await session)]);
}

async function requestSession(context: BrowserContext, origin: string, apiKey: string) {
  const url = `${origin}/console/api/session`;
  const answer = await context.request.post(url, { headers: { origin }, data: { apiKey } });
  if (!answer.ok()) throw new Error(`sign-in was answered ${answer.status()}: ${await answer.text()}`);
  return await context.cookies(origin);
}

/** Forgets the sessions of a key, after which it signs in once more. */
export function forgetSession(server: Port, apiKey: string): void {
  sessions.delete(`${originOf(server)} ${apiKey}`);
}

/** Waits until the page has a heading, and no part of it is loading. */
export async function untilLoaded(page: Page): Promise<void> {
  await page.getByRole("heading", { level: 1 }).waitFor();
  await expect.poll(() => page.locator("[aria-busy=true]").count()).toBe(0);
}

/** Goes to another screen as a link does, without a new load of the page. */
export async function visit(page: Page, path: string): Promise<void> {
  await page.evaluate((to) => {
    history.pushState(null, "", to);
    dispatchEvent(new PopStateEvent("popstate"));
  }, `/console${path}`);
  await untilLoaded(page);
}
