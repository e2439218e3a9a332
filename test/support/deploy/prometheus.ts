import { renameSync, writeFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { vi } from "vitest";
import { parse, stringify } from "yaml";
import type { Addresses } from "../../../server/src/replica/server.ts";
import { freePort } from "../redis/redis.ts";
import { startProgram } from "./background-program.ts";
import { readRepositoryFile } from "./expressions.ts";

/** A Prometheus that scrapes replicas and evaluates the rules of `deploy/` every second. */
export interface TestPrometheus {
  /** Returns the labels of the alerts that fire. */
  firing(): Promise<readonly Readonly<Record<string, string>>[]>;
  /** Replaces the targets; Prometheus notices within a second or two. */
  setTargets(installations: Installations): void;
  /** Returns the values of an expression, one for each series. @throws Error if it is malformed. */
  query(expr: string): Promise<readonly number[]>;
  stop(): Promise<void>;
}

/** A replica's addresses, and whether its management port speaks TLS, with any certificate. */
export type Scraped = Addresses & { readonly isTls?: boolean };

/** Replicas by the job that names their installation. */
type Installations = Readonly<Record<string, readonly Scraped[]>>;

/** The address of a blackbox exporter, and of what it probes. */
export interface Probe {
  readonly exporter: string;
  readonly target: string;
}

/** On a busy machine too. */
const START_TIMEOUT_MS = 60_000;
/** Seconds instead of the minutes of an installation. */
const INTERVALS = { scrape_interval: "1s", scrape_timeout: "1s", evaluation_interval: "1s" };

/**
 * Starts Prometheus with `deploy/prometheus/prometheus.yml`, its targets and intervals replaced.
 *
 * @param speed by which the alerts' times until they fire are divided.
 * @param probe undefined: nothing is probed.
 * @param apiKey undefined: none is sent.
 */
export async function startPrometheus(
  installations: Installations,
  speed = 1,
  probe?: Probe,
  apiKey?: string,
): Promise<TestPrometheus> {
  const dir = await mkdtemp(join(tmpdir(), "ow-prometheus-"));
  const address = `127.0.0.1:${await freePort()}`;
  const config = join(dir, "prometheus.yml");
  const setTargets = (changed: Installations) => writeTargets(join(dir, "targets.json"), changed);
  setTargets(installations);
  await writeFile(join(dir, "rules.yml"), fastRules(speed));
  await writeFile(config, configuration(probe, apiKey));
  const program = await startProgram("prometheus", [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(dir, "data")}`,
    `--web.listen-address=${address}`,
    "--log.level=error",
  ]);
  const isReady = () =>
    fetch(`http://${address}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  await vi.waitUntil(isReady, { timeout: START_TIMEOUT_MS, interval: 50 });
  return {
    firing: () => firing(address),
    setTargets,
    query: (expr) => query(address, expr),
    async stop() {
      await program.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

function configuration(probe: Probe | undefined, apiKey: string | undefined): string {
  const { scrape_configs, ...rest } = parse(readRepositoryFile("deploy/prometheus/prometheus.yml"));
  const ours = scrape_configs.filter(({ job_name }: { job_name: string }) => job_name === "onceward");
  return stringify({
    ...rest,
    global: INTERVALS,
    rule_files: ["rules.yml"],
    alerting: {},
    scrape_configs: [
      ...(probe === undefined ? [] : [probing(scrape_configs, probe)]),
      ...ours.map(({ static_configs: _, ...scrape }: { static_configs: unknown }) => ({
        ...scrape,
        ...(apiKey !== undefined && { authorization: { credentials: apiKey } }),
        tls_config: { insecure_skip_verify: true },
        file_sd_configs: [{ files: ["targets.json"], refresh_interval: "1s" }],
      })),
    ],
  });
}

/** Returns the job of `deploy/` that probes, with other addresses. */
function probing(scrape_configs: readonly { job_name: string }[], { exporter, target }: Probe): object {
  const job = scrape_configs.find(({ job_name }) => job_name === "probe");
  const text = JSON.stringify(job).replaceAll("balancer:50051", target).replaceAll("blackbox:9115", exporter);
  return JSON.parse(text);
}

/** Writes the file from which Prometheus reads its targets, in one step. Tests that run together write it by turns: it is synchronous. */
function writeTargets(file: string, installations: Installations): void {
  const groups = Object.entries(installations).map(([job, replicas]) => ({
    labels: { job, __scheme__: replicas.some(({ isTls }) => isTls) ? "https" : "http" },
    targets: replicas.map(({ managementPort }) => `127.0.0.1:${managementPort}`),
  }));
  writeFileSync(`${file}.new`, JSON.stringify(groups));
  renameSync(`${file}.new`, file);
}

/** Returns the rules of `deploy/` without intervals of their own, and with shorter times until alerts fire. */
function fastRules(speed: number): string {
  const { groups } = parse(readRepositoryFile("deploy/prometheus/rules.yml"));
  const faster = (rule: { for?: string }) =>
    rule.for === undefined ? rule : { ...rule, for: `${Math.round(millisecondsOf(rule.for) / speed)}ms` };
  return stringify({
    groups: groups.map((group: { rules: readonly object[] }) => ({
      ...group,
      interval: "1s",
      rules: group.rules.map(faster),
    })),
  });
}

/** Returns the milliseconds of a duration of Prometheus with one unit. */
function millisecondsOf(duration: string): number {
  const units: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000 };
  return Number.parseInt(duration, 10) * (units[duration.at(-1) ?? ""] ?? Number.NaN);
}

async function firing(address: string): Promise<readonly Readonly<Record<string, string>>[]> {
  const { data } = (await (await fetch(`http://${address}/api/v1/alerts`)).json()) as {
    data: { alerts: readonly { labels: Readonly<Record<string, string>>; state: string }[] };
  };
  return data.alerts.filter(({ state }) => state === "firing").map(({ labels }) => labels);
}

async function query(address: string, expr: string): Promise<readonly number[]> {
  const response = await fetch(`http://${address}/api/v1/query`, {
    method: "POST",
    body: new URLSearchParams({ query: expr }),
  });
  const { data, error } = (await response.json()) as {
    data?: { result: readonly { value: readonly [number, string] }[] };
    error?: string;
  };
  if (data === undefined) throw new Error(`${expr}: ${error}`);
  return data.result.map(({ value: [, number] }) => Number(number));
}
