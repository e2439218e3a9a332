import { type BrowserServer, chromium } from "playwright-core";
import type { TestProject } from "vitest/node";
import { findProgram } from "../../../deploy/release/commands.ts";
import { canInstallPackages, installPackages } from "../processes/debian-packages.ts";

/** Chromium and its libraries are 100 MB. */
const INSTALL_TIMEOUT_MS = 300_000;

/** Nothing leaves this machine: neither the browser's own services nor a request of a page. */
const ARGS = [
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
];

/**
 * Starts one Chromium for all test files of a project; each test opens its own context in it. Installs Chromium
 * if it is missing and the user can; else prints that the tests are skipped.
 *
 * @throws Error if Chromium is missing and `ONCEWARD_REQUIRE_CONSOLE` is `true`.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const program = await findChromium();
  if (program === undefined) {
    const reason = "Chromium is not installed: install Debian's package chromium to run the console's tests.";
    if (process.env.ONCEWARD_REQUIRE_CONSOLE === "true") throw new Error(reason);
    process.stderr.write(`All tests of the console are skipped. ${reason}\n`);
    project.provide("browserEndpoint", "");
    return async () => {};
  }
  const browser = await startBrowser(program);
  project.provide("browserEndpoint", browser.wsEndpoint());
  return () => browser.close();
}

async function findChromium(): Promise<string | undefined> {
  const installed = await findProgram("chromium");
  if (installed !== undefined || !canInstallPackages()) return installed;
  await installPackages(["chromium", "fonts-dejavu-core"], INSTALL_TIMEOUT_MS).catch((error: unknown) => {
    process.stderr.write(
      `Chromium could not be installed: ${error instanceof Error ? error.message : error}\n`,
    );
  });
  return await findProgram("chromium");
}

/** The sandbox needs privileges that root in a container does not have; only our own pages are opened. */
function startBrowser(executablePath: string): Promise<BrowserServer> {
  return chromium.launchServer({ executablePath, args: ARGS, chromiumSandbox: false, host: "127.0.0.1" });
}

declare module "vitest" {
  export interface ProvidedContext {
    /** The WebSocket URL of the project's browser; empty: there is none. */
    readonly browserEndpoint: string;
  }
}
