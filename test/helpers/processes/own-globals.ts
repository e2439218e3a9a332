import { afterAll } from "vitest";

const REPLACED = ["Request", "Response"] as const;

/** Restores Node's Request and Response after a test file that starts Hono's server, which replaces them. */
export function restoreGlobals(): void {
  const own = REPLACED.map((name) => Object.getOwnPropertyDescriptor(globalThis, name));
  afterAll(() => {
    for (const [index, name] of REPLACED.entries()) Object.defineProperty(globalThis, name, own[index] ?? {});
  });
}
