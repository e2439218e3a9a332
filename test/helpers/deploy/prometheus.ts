import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { vi } from "vitest";
import { parse, stringify } from "yaml";
import type { Addresses } from "../../../server/src/server.ts";
import { freePort } from "../redis/redis.ts";
import { readRepositoryFile } from "./expressions.ts";
import { programPath } from "./programs.ts";

/** A Prometheus that scrapes replicas and evaluates the rules of `deploy/` every second. */
export interface TestPrometheus {
  /** Returns the values of an expression, one for each series. @throws Error if it is malformed. */
  query(expr: string): Promise<readonly number[]>;
  stop(): Promise<void>;
}

/** Runs the program until standard input ends, as it does when the tests are killed. */
const WATCHED = '"$@" & read -r _; kill -9 $! 2>/dev/null; wait';
/** On a busy machine too. */
const START_TIMEOUT_MS = 60_000;
/** Seconds instead of the minutes of an installation. */
const INTERVALS = { scrape_interval: "1s", scrape_timeout: "1s", evaluation_interval: "1s" };

/** Starts Prometheus with `deploy/prometheus/prometheus.yml`, its targets and intervals replaced. */
export async function startPrometheus(replicas: readonly Addresses[]): Promise<TestPrometheus> {
  const dir = await mkdtemp(join(tmpdir(), "ow-prometheus-"));
  const address = `127.0.0.1:${await freePort()}`;
  const config = join(dir, "prometheus.yml");
  await writeFile(join(dir, "rules.yml"), fastRules());
  await writeFile(config, configuration(replicas));
  const program = [
    programPath("prometheus"),
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(dir, "data")}`,
    `--web.listen-address=${address}`,
    "--log.level=error",
  ];
  const child = spawn("sh", ["-c", WATCHED, "sh", ...program], { stdio: ["pipe", "ignore", "inherit"] });
  const exited = once(child, "exit");
  const isReady = () =>
    fetch(`http://${address}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  await vi.waitUntil(isReady, { timeout: START_TIMEOUT_MS, interval: 50 });
  return {
    query: (expr) => query(address, expr),
    async stop() {
      child.stdin.end();
      await exited;
      await rm(dir, { recursive: true, force: true });
    },
  };
}

function configuration(replicas: readonly Addresses[]): string {
  const { scrape_configs, ...rest } = parse(readRepositoryFile("deploy/prometheus/prometheus.yml"));
  const targets = replicas.map(({ managementPort }) => `127.0.0.1:${managementPort}`);
  const ours = scrape_configs.filter(({ job_name }: { job_name: string }) => job_name === "onceward");
  return stringify({
    ...rest,
    global: INTERVALS,
    rule_files: ["rules.yml"],
    alerting: {},
    scrape_configs: ours.map((scrape: object) => ({ ...scrape, static_configs: [{ targets }] })),
  });
}

/** Returns the rules of `deploy/` without intervals of their own. */
function fastRules(): string {
  const { groups } = parse(readRepositoryFile("deploy/prometheus/rules.yml"));
  return stringify({ groups: groups.map((group: object) => ({ ...group, interval: "1s" })) });
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
