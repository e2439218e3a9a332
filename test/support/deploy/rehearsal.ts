import { setTimeout } from "node:timers/promises";
import { expect, vi } from "vitest";
import type { IdempotencyClient } from "../calls/clients.ts";
import { type Probe, type Scraped, startPrometheus } from "./prometheus.ts";

/** Bounds a hung test; an alert comes within a few scrapes. */
export const ALERT_TIMEOUT_MS = 90_000;
const PATIENCE = { timeout: ALERT_TIMEOUT_MS, interval: 250 };

/** One Prometheus for several installations, named by their jobs. Tests may use it at the same time, each with its own jobs. */
export interface Rehearsal {
  /** Gives an installation these replicas, and resolves once all of them are scraped. None: its targets vanish. */
  scrape(job: string, replicas: readonly Scraped[]): Promise<void>;
  /** Returns the names of the alerts of an installation that fire, each once, sorted. */
  firing(job: string): Promise<readonly string[]>;
  /** Waits until these alerts of an installation fire, beside others. */
  untilAlerts(job: string, ...alerts: readonly string[]): Promise<void>;
  /** Waits until these alerts of an installation fire, and no others. None: until all have ended. */
  untilOnly(job: string, ...alerts: readonly string[]): Promise<void>;
  stop(): Promise<void>;
}

/** Starts it. @param speed by which the alerts' times until they fire are divided. */
export async function startRehearsal(speed: number, probe?: Probe): Promise<Rehearsal> {
  const installations = new Map<string, readonly Scraped[]>();
  const prometheus = await startPrometheus({}, speed, probe);
  const firing = async (job: string) => {
    const own = (await prometheus.firing()).filter((labels) => labels.job === job);
    return [...new Set(own.map(({ alertname = "" }) => alertname))].sort();
  };
  return {
    async scrape(job, replicas) {
      if (replicas.length > 0) installations.set(job, replicas);
      else installations.delete(job);
      prometheus.setTargets(Object.fromEntries(installations));
      if (replicas.length === 0) return;
      await vi.waitFor(async () => {
        const scraped = await prometheus.query(`count(onceward_build_info{job="${job}"})`);
        expect(scraped).toEqual([replicas.length]);
      }, PATIENCE);
    },
    firing,
    async untilAlerts(job, ...alerts) {
      await vi.waitFor(async () => {
        expect(await firing(job)).toEqual(expect.arrayContaining([...alerts]));
      }, PATIENCE);
    },
    async untilOnly(job, ...alerts) {
      await vi.waitFor(async () => expect(await firing(job)).toEqual([...alerts].sort()), PATIENCE);
    },
    stop: () => prometheus.stop(),
  };
}

/** Claims one key after the other, as four callers, regardless of the answers. Returns the function that stops it. */
export function startClaims(client: IdempotencyClient): () => Promise<void> {
  let keys = 0;
  return repeatCalls(4, () =>
    client.claim({ namespace: "charges", key: `key-${keys++}` }, { timeoutMs: 2000 }),
  );
}

/** Repeats a call as several callers, each with a pause after a failure. Returns the function that stops it. */
export function repeatCalls(callers: number, call: () => Promise<unknown>): () => Promise<void> {
  let stopped = false;
  const repeating = Array.from({ length: callers }, async () => {
    while (!stopped) await call().catch(() => setTimeout(10));
  });
  return async () => {
    stopped = true;
    await Promise.all(repeating);
  };
}
