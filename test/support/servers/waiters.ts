import { expect } from "vitest";
import type { Addresses } from "../../../server/src/replica/server.ts";
import { readMetrics } from "./metrics.ts";

/** Resolves once exactly `count` calls wait on a server, according to its metrics. */
export async function untilWaiting(server: Addresses, count: number, timeout = 30_000): Promise<void> {
  const waiting = async () => (await readMetrics(server)).get("onceward_waiters");
  await expect.poll(waiting, { timeout, interval: 10 }).toBe(count);
}
