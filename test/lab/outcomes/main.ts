import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { failUsage, readCommandLine, wholeNumber } from "../../../server/dev/command-line.ts";
import { startEmbeddedPostgres } from "../../../server/dev/embedded/postgres.ts";
import { printable } from "../../../server/src/commands/printable.ts";
import { migrate } from "../../../server/src/database/migrate.ts";
import { startServerProcess } from "../../support/servers/server-process.ts";
import { createTenant, setNamespacePolicy } from "../../support/servers/tenants.ts";
import { openBenchDatabase } from "../bench/database.ts";
import { interruption, runToEnd } from "../chaos/interruption.ts";
import { Fleet } from "./fleet.ts";
import {
  brokenPromises,
  isChargedTwice,
  isSettled,
  type Story,
  type StoryKind,
  settledAfterMs,
} from "./judge.ts";
import { LANGUAGES, programOf } from "./worker.ts";

const USAGE = `npm run lab -- outcomes [OPTIONS]: a fleet of workers charges at providers by run({ resolve }) under HOLD. They are
killed, interrupted and stopped for longer than a lease at every moment, while the broker delivers each operation until it is settled.
Exits 1 if an operation is charged twice, an answer is not the provider's, less than 99 % of the ambiguous operations are settled without
a person within a minute of the time at which the provider can tell, or a moment was never hit. A provider without keys (no-key) leaves
ambiguous operations to people; reclaim is such a one under RECLAIM, where an interruption may repeat the charge.
  --language L       typescript, python, asyncio or go, one or more; default: all
  --kind K           stored-answer, latest-status, cancel, search, no-key or reclaim, one or more; default: all
  --operations N     of each language; default: 5000
  --seed N           the seed of what happens to which operation; default: 1
  --workers N        processes at once; default: 4
  --kill-every-ms N  how often a worker is ended, if the machine starts others so fast; default: 500
  --lease-ms N       the length of each lease; default: 2000
  --lag-ms N         how long a search lags, in real time; default: 3000
  --begun            claims mark when their effect begins: a crash before that is not ambiguous
  --demo             the typescript client at the first four providers, with fewer operations`;

const KINDS = [
  "stored-answer",
  "latest-status",
  "cancel",
  "search",
  "no-key",
  "reclaim",
] as const satisfies StoryKind[];
const RESOLVABLE: readonly StoryKind[] = KINDS.slice(0, 4);
const { values } = readCommandLine(USAGE, {
  options: {
    language: { type: "string", multiple: true },
    kind: { type: "string", multiple: true },
    operations: { type: "string" },
    seed: { type: "string", default: "1" },
    workers: { type: "string", default: "4" },
    "kill-every-ms": { type: "string", default: "500" },
    "lease-ms": { type: "string", default: "2000" },
    "lag-ms": { type: "string", default: "3000" },
    begun: { type: "boolean", default: false },
    demo: { type: "boolean", default: false },
  },
});
const { demo } = values;
const languages = named(LANGUAGES, values.language ?? (demo ? ["typescript"] : LANGUAGES));
const kinds = named(KINDS, values.kind ?? (demo ? RESOLVABLE : KINDS));
const options = {
  kinds,
  marksBegin: values.begun,
  operations: wholeNumber(USAGE, "operations", values.operations ?? (demo ? "3000" : "5000"), 1, 1e7),
  seed: wholeNumber(USAGE, "seed", values.seed, 0, 2 ** 32 - 1),
  workers: wholeNumber(USAGE, "workers", values.workers, 1, 100),
  killEveryMs: wholeNumber(USAGE, "kill-every-ms", values["kill-every-ms"], 1, 1e6),
  leaseMs: wholeNumber(USAGE, "lease-ms", values["lease-ms"], 1000, 60_000),
  lagMs: wholeNumber(USAGE, "lag-ms", values["lag-ms"], 0, 600_000),
};
/** Of the ambiguous operations that a provider can tell about. */
const LEAST_SHARE = 0.99;
const SHOWN = 5;

await runToEnd(async () => {
  await using cleanUp = new AsyncDisposableStack();
  const dir = await mkdtemp(join(tmpdir(), "ow-outcomes-"));
  cleanUp.defer(() => rm(dir, { recursive: true, force: true }));
  // If this program runs as root, Postgres runs as another user, who needs access.
  await chmod(dir, 0o755);
  print("Starting PostgreSQL and the service");
  const postgres = await startEmbeddedPostgres({ dataDir: join(dir, "data"), settings: { fsync: "off" } });
  cleanUp.defer(() => postgres.stop());
  await migrate(postgres.url("postgres"), () => {});
  await using database = openBenchDatabase(postgres.url("postgres"));
  const tenant = await createTenant(database);
  for (const kind of kinds)
    await setNamespacePolicy(database, tenant, kind, {
      on_lease_expiry: kind === "reclaim" ? "RECLAIM" : "HOLD",
    });
  const server = await startServerProcess(postgres.url("postgres"));
  cleanUp.defer(() => server.end());
  const connection = { address: `http://127.0.0.1:${server.grpcPort}`, apiKey: tenant.apiKey };

  for (const language of languages) {
    const program = await programOf(language, dir);
    print(
      `${options.workers} workers of the ${language} client make ${options.operations} charges, and are killed`,
    );
    interruption.signal.throwIfAborted();
    await using fleet = new Fleet({ ...options, program, connection, prefix: language, onProgress: print });
    const stories = await fleet.run();
    print(`Workers ended: ${[...fleet.endings].map(([ending, times]) => `${ending} ${times}`).join(", ")}`);
    const isProof = demo || [...fleet.endings.values()].every((times) => times > 0);
    if (!(tell(language, stories) && isProof)) process.exitCode = 1;
  }
});

/** Prints what became of operations. Returns whether that is what is promised. */
function tell(language: string, stories: readonly Story[]): boolean {
  const wrong = stories.filter((story) => brokenPromises(story, options).length > 0);
  for (const story of wrong.slice(0, SHOWN))
    print(printable(`WRONG: ${brokenPromises(story, options).join("; ")}\n  ${JSON.stringify(story)}`));
  for (const kind of kinds) {
    const all = stories.filter((story) => story.kind === kind);
    const ambiguous = all.filter(({ isAmbiguous }) => isAmbiguous);
    const settled = ambiguous.filter((story) => isSettled(story, options));
    const slowestMs = settled.reduce((max, story) => Math.max(max, settledAfterMs(story, options)), 0);
    print(
      `${language}, ${kind}: ${all.length} operations, ${ambiguous.length} ambiguous on the way, ${settled.length} settled without a person ` +
        `(slowest: ${(slowestMs / 1000).toFixed(1)} s), ${all.filter((story) => wrong.includes(story)).length} wrong`,
    );
  }
  const ambiguous = stories.filter(({ kind, isAmbiguous }) => isAmbiguous && RESOLVABLE.includes(kind));
  const settled = ambiguous.filter((story) => isSettled(story, options)).length;
  const early = stories.filter((story) => !story.mayHaveBegun && story.interruptedAtMs.length > 0);
  if (values.begun)
    print(
      `crashes before the effect: ${early.length}, ambiguous: ${early.filter((each) => each.isAmbiguous).length}`,
    );
  const twice = stories.filter(isChargedTwice).length;
  print(`settled automatically: ${settled} of ${ambiguous.length}, charged twice: ${twice}`);
  return wrong.length === 0 && settled >= ambiguous.length * LEAST_SHARE;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function named<const Name extends string>(known: readonly Name[], names: readonly string[]): readonly Name[] {
  return names.map(
    (name) => known.find((each) => each === name) ?? failUsage(USAGE, `unknown name: ${name}`),
  );
}
