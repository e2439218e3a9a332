import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readCommandLine, wholeNumber } from "../../../server/dev/command-line.ts";
import { startEmbeddedPostgres } from "../../../server/dev/embedded/postgres.ts";
import { migrate } from "../../../server/src/database/migrate.ts";
import { type Certificate, makeCertificate, tlsSettings } from "../../support/network/certificates.ts";
import { startServerProcess } from "../../support/servers/server-process.ts";
import { withStallProbe } from "../../support/servers/stalls.ts";
import { createApiKey, createTenant } from "../../support/servers/tenants.ts";
import { openBenchDatabase } from "../bench/database.ts";
import { measureCosts } from "./costs.ts";
import { type FuzzReport, fuzz } from "./fuzz.ts";

const USAGE = `npm run lab -- fuzz [OPTIONS]: sends mutated conversations to two servers, one of them with TLS, and prints a
report. Exits 1 if there are findings.
  --frames N  messages to send to each server; default: 100000
  --seed N    the same seed makes the same messages; default: 1`;

const { values } = readCommandLine(USAGE, {
  options: { frames: { type: "string", default: "100000" }, seed: { type: "string", default: "1" } },
});
/** The promise is 50 ms on an idle machine. */
const MAX_WORK_MS = 100;

const frames = wholeNumber(USAGE, "frames", values.frames, 1, 1e9);
const seed = wholeNumber(USAGE, "seed", values.seed, 0, 2 ** 32 - 1);

await using cleanUp = new AsyncDisposableStack();
// Ends Postgres and the server with the fuzzer. A second signal, such as the one that npm forwards, changes
// nothing.
const interruption = new AbortController();
interruption.signal.addEventListener(
  "abort",
  () => void cleanUp.disposeAsync().finally(() => process.exit(130)),
);
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => interruption.abort());
const databaseUrl = await startPostgres();
await migrate(databaseUrl, () => {});
const certificate = await makeCertificate();
cleanUp.defer(() => certificate.remove());
for (const ofTls of [undefined, certificate]) {
  const report = await fuzzServer(ofTls);
  print(report, ofTls !== undefined);
  if (report.findings.length > 0) process.exitCode = 1;
}

await findCosts();

/**
 * Sends costly requests; one that blocks the event loop for too long, even on a busy machine, is a finding.
 */
async function findCosts(): Promise<void> {
  await using database = openBenchDatabase(databaseUrl);
  const { id: tenantId, apiKey } = await createTenant(database);
  const keys = {
    CALLER: apiKey,
    TENANT_ADMIN: await createApiKey(database, { role: "TENANT_ADMIN", tenantId }),
    OPERATOR: await createApiKey(database, { role: "OPERATOR" }),
  };
  const server = await startServerProcess(databaseUrl, {}, withStallProbe());
  cleanUp.defer(() => server.end());
  for (const withKey of [false, true]) {
    const apiKeyOf = (role: keyof typeof keys) => (withKey ? keys[role] : undefined);
    const how = { by: "longestWorkMs", suspectMs: MAX_WORK_MS } as const;
    const costs = await measureCosts({ server, apiKeyOf }, how);
    const found = costs.filter(({ ms }) => ms > MAX_WORK_MS);
    const longestMs = Math.max(...costs.map(({ ms }) => ms));
    process.stdout.write(
      `costly requests ${withKey ? "with" : "without"} a credential: ${costs.length}, longest ${longestMs} ms\n`,
    );
    for (const { what, ms } of found) process.stdout.write(`  FOUND ${what}: ${ms} ms\n`);
    if (found.length > 0) process.exitCode = 1;
  }
  await server.end();
}

async function startPostgres(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "ow-fuzz-"));
  cleanUp.defer(() => rm(dir, { recursive: true, force: true }));
  // If the fuzzer runs as root, Postgres runs as another user, who needs access.
  await chmod(dir, 0o755);
  const postgres = await startEmbeddedPostgres({ dataDir: join(dir, "data"), settings: { fsync: "off" } });
  cleanUp.defer(() => postgres.stop());
  return postgres.url("postgres");
}

async function fuzzServer(ofTls: Certificate | undefined): Promise<FuzzReport> {
  await using database = openBenchDatabase(databaseUrl);
  const { apiKey } = await createTenant(database);
  const env = { ONCEWARD_REQUEST_TIMEOUT: "1s", ...(ofTls && tlsSettings(ofTls)) };
  const server = await startServerProcess(databaseUrl, env);
  cleanUp.defer(() => server.end());
  const tls = ofTls && { ca: ofTls.pem.cert };
  const report = await fuzz({ server, apiKey, tls }, { seed: seed ?? 1, frames: (frames ?? 0) / 2 });
  await server.end();
  return report;
}

function print(report: FuzzReport, overTls: boolean): void {
  const { framesByKind, framesByMutation, findings, ...figures } = report;
  const lines = [
    `${overTls ? "TLS" : "plain"}: ${JSON.stringify(figures)}`,
    ...Object.entries(framesByKind).map(
      ([kind, count]) => `  ${String(count).padStart(7)} frames of ${kind}`,
    ),
    ...Object.entries(framesByMutation)
      .sort(([, a], [, b]) => b - a)
      .map(([name, count]) => `  ${String(count).padStart(7)} frames with ${name}`),
    ...findings.map((finding) => `  FOUND ${finding.slice(0, 2000)}`),
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
}
