import { afterAll } from "vitest";

const REPLACED = ["Request", "Response"] as const;

/**
 * Restores Node's Request and Response after each test file: Hono's server replaces them, and the files of a worker
 * share its globals.
 */
const own = REPLACED.map((name) => Object.getOwnPropertyDescriptor(globalThis, name));
afterAll(() => {
  for (const [index, name] of REPLACED.entries()) Object.defineProperty(globalThis, name, own[index] ?? {});
});
