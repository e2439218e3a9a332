import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { createOnceward } from "@onceward/client";
import { createTenants } from "./create-tenants.ts";
import type { Bench } from "./figure.ts";
import { fillRecords } from "./fill.ts";
import { type Axis, plotGrowth } from "./growth-plot.ts";
import { measure, type Step } from "./load.ts";
import { number } from "./report.ts";
import { FreshClaims } from "./target.ts";
import { oncewardTarget } from "./target-onceward.ts";
import { openUnaryTarget } from "./target-unary.ts";

const CALLERS = 256;
/** Payloads of 64 KiB from all callers at once take this long. */
const MIN_SLICE_MS = 1000;
const ROWS = [0, 100_000, 1_000_000, 10_000_000];
const TENANTS = [1, 10, 100, 1000, 10_000];
const NAMESPACES = [1, 10, 100, 1000];
const PAYLOADS_BYTES = [100, 1024, 8 * 1024, 64 * 1024];
const REPLICAS = [1, 2, 3];

/** Measures `--growth`: rates as one quantity grows; writes growth.md and growth.svg beside this file. */
export async function measureGrowth(bench: Bench): Promise<void> {
  const axes: Axis[] = [];
  for (const measureAxis of [byRows, byTenants, byNamespaces, byPayload, byReplicas]) {
    bench.signal.throwIfAborted();
    axes.push(await measureAxis(bench));
  }
  const table = growthTable(axes);
  console.log(`\n${table}`);
  await writeFile(fileURLToPath(new URL("growth.md", import.meta.url)), `# Cost of growth\n\n${table}`);
  await writeFile(fileURLToPath(new URL("growth.svg", import.meta.url)), plotGrowth(axes));
}

/** Measures a step at one point of an axis, and reports its rate. */
async function measureAt(bench: Bench, name: string, at: number, step: Step) {
  const sliceMs = Math.max(MIN_SLICE_MS, bench.pace.sliceMs);
  const { perSecond } = await measure(step, { ...bench.pace, sliceMs, callers: CALLERS }, bench.signal);
  bench.progress(`${name} ${at}: ${number(perSecond)}/s`);
  return { at, perSecond };
}

async function byRows(bench: Bench): Promise<Axis> {
  await using station = await bench.rig.startStation();
  const claims = new FreshClaims(oncewardTarget(station.client.calls, station.database), bench.violations);
  const points = [];
  let filled = 0;
  for (const at of ROWS.filter((rows) => rows <= bench.options.rows)) {
    await fillRecords(station, { rows: at - filled, signal: bench.signal });
    filled = at;
    points.push(await measureAt(bench, "rows", at, claims.claim));
  }
  return { name: "rows in the table", unit: "claims/s", points };
}

/** Measures unary calls, because each carries its own credential. */
async function byTenants(bench: Bench): Promise<Axis> {
  await using station = await bench.rig.startStation();
  const apiKeys = await createTenants(station.database, TENANTS.at(-1) ?? 1);
  const points = [];
  for (const at of TENANTS) {
    await using target = await openUnaryTarget(station, apiKeys.slice(0, at));
    const claims = new FreshClaims(target, bench.violations);
    points.push(await measureAt(bench, "tenants", at, claims.claim));
  }
  return { name: "tenants (unary)", unit: "claims/s", points };
}

async function byNamespaces(bench: Bench): Promise<Axis> {
  await using station = await bench.rig.startStation();
  const { client, database, tenant } = station;
  const points = [];
  for (const at of NAMESPACES) {
    const prefix = `g-${randomUUID()}`;
    const names = Array.from({ length: at }, (_, index) => `${prefix}-${index}`);
    await database.query(
      "insert into namespaces (tenant_id, name, key_retention_s) select $1::int, unnest($2::text[]), 86400",
      [tenant.id, names],
    );
    const claims = new FreshClaims(oncewardTarget(client.calls, database, names), bench.violations);
    points.push(await measureAt(bench, "namespaces", at, claims.claim));
  }
  return { name: "namespaces with a policy", unit: "claims/s", points };
}

async function byPayload(bench: Bench): Promise<Axis> {
  await using station = await bench.rig.startStation();
  const points = [];
  for (const at of PAYLOADS_BYTES) {
    const pairs = new FreshClaims(oncewardTarget(station.client.calls, station.database), bench.violations);
    points.push(await measureAt(bench, "payload bytes", at, () => pairs.pairOf(at)));
  }
  return { name: "bytes of payload", unit: "claim+complete/s", points };
}

async function byReplicas(bench: Bench): Promise<Axis> {
  await using first = await bench.rig.startStation();
  await using cleanUp = new AsyncDisposableStack();
  const servers = [first.server];
  const points = [];
  for (const at of REPLICAS) {
    while (servers.length < at) servers.push((await bench.rig.startStation({ on: first })).server);
    const clients = servers.map(({ grpcPort }) =>
      cleanUp.use(createOnceward({ address: `http://127.0.0.1:${grpcPort}`, apiKey: first.tenant.apiKey })),
    );
    const sides = clients.map(
      ({ calls }) => new FreshClaims(oncewardTarget(calls, first.database), bench.violations),
    );
    let turn = 0;
    const step = async () => sides[turn++ % sides.length]?.claim();
    points.push(await measureAt(bench, "replicas", at, step));
  }
  return { name: "replicas (on one machine)", unit: "claims/s", points };
}

function growthTable(axes: readonly Axis[]): string {
  const lines = axes.flatMap(({ name, unit, points }) =>
    points.map(({ at, perSecond }) => {
      const relative = perSecond / (points[0]?.perSecond ?? perSecond);
      return `| ${name} | ${at.toLocaleString("en-US")} | ${number(perSecond)} ${unit} | ${number(relative)} |`;
    }),
  );
  return ["| what grows | to | rate | ÷ first |", "|---|---|---|---|", ...lines, ""].join("\n");
}
