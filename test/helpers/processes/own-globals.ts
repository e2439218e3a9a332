import { afterAll } from "vitest";

const REPLACED = ["Request", "Response"] as const;

/** For a file that starts Hono's server, which replaces Node's Request and Response: gives the files after it Node's. */
export function restoreGlobals(): void {
  const own = REPLACED.map((name) => Object.getOwnPropertyDescriptor(globalThis, name));
  afterAll(() => {
    for (const [index, name] of REPLACED.entries()) Object.defineProperty(globalThis, name, own[index] ?? {});
  });
}
