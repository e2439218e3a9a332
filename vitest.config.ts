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

/** Tests of a replica with its database, Redis or RabbitMQ. */
const SERVICE_TESTS = [
  "test/{adapters,admin,cache,cli,client,concurrency,contract,doctor,neighbours}/**/*.test.ts",
  "test/{outage,store,tracing,transports}/**/*.test.ts",
  "test/lab/model/replay/**/*.test.ts",
];
/** Tests of commands that use any database. Those that change Postgres itself, or start it, start their own in "unit". */
const COMMAND_TESTS = ["test/commands/{api-keys,encryption-status,migrate,move-tenant,serve}.test.ts"];
/**
 * Tests that together run every statement of the service on the oldest supported Postgres: what the statements
 * do, their plans and their locks. Behaviour above the statements does not depend on Postgres' version.
 */
const OLDEST_POSTGRES_TESTS = [
  "test/adapters/inbox/{complete-in,executors,once,relay,tables}.test.ts",
  "test/admin/{api-keys,audit-events,cancel-record-job,list-records,operator-tenant-states}.test.ts",
  "test/admin/{resolve-record,restamping,server-info,service-role,usage}.test.ts",
  "test/concurrency/{one-winner,opposite-batches,settling-races,sweep-races,take-over-races}.test.ts",
  "test/contract/{batch,claim,complete,extend-lease,lease-expiry,lookup,release,retention}.test.ts",
  "test/store/{find-resolved,heap-only-updates,idle-transactions,insight-sample,instants}.test.ts",
  "test/store/{migrations,plans,schema,sql-arrays,stale-statistics,sweep}.test.ts",
];
/**
 * The packages, of test/on-demand, of the majors between the oldest and the newest supported Postgres, by the name of their
 * project. An error of a major alone shows in its plans, in its planner's answers and in what a statement may
 * contain: these tests plan every statement, run those of calls, and run the migrations.
 */
const MIDDLE_POSTGRES = { "postgres 16": "embedded-postgres16", "postgres 17": "embedded-postgres17" };
const MIDDLE_POSTGRES_TESTS = [
  "test/admin/restamping.test.ts",
  "test/concurrency/{one-winner,take-over-races}.test.ts",
  "test/contract/{batch,claim,complete,lease-expiry}.test.ts",
  "test/store/{plans,schema,sweep}.test.ts",
];
/** Tests of answers that consist of stored values: run once more with encryption at rest, over one transport. */
const ENCRYPTED_TESTS = [
  "test/contract/{batch,batch-property,claim,complete,extend-lease,lease-expiry,lookup,retention}.test.ts",
];
/**
 * Tests of test and development tools, and of the published package: run by `npm run check`, not by `npm
 * test`.
 */
const TOOL_TESTS = [
  "test/{embedded,packaging,release,tools}/**/*.test.ts",
  "test/lab/{bench,chaos,fuzz,history,insight,outcomes,promises,traffic}/**/*.test.ts",
  "test/lab/*.test.ts",
  "test/lab/model/*.test.ts",
];

/**
 * Tests that run the configurations of `deploy/` with Debian's programs: run by `npm run test:deploy`, not by
 * `npm test`.
 */
const DEPLOY_TESTS = ["test/deploy/**/*.test.ts"];

/** Tests of the documentation's pages in a real browser, after `npm run docs`: run by `npm run test:docs`, not by `npm test`. */
const DOCS_TESTS = ["test/docs/**/*.test.ts"];

/** Tests of the console in a real browser: run by `npm run test:console`, not by `npm test`. */
const CONSOLE_TESTS = ["test/console/**/*.test.ts"];

/**
 * Tests that need a tool of another language, such as Python's schemathesis, or hundreds of megabytes of packages: run
 * by `npm run test:optional`, not by `npm test`. Each file says why it is skipped if its tool is missing.
 */
const OPTIONAL_TESTS = ["test/optional/**/*.test.ts"];

/**
 * Tests that need packages of several hundred megabytes, which `npm ci` does not install: run by `npm run
 * test:on-demand`, not by `npm test`.
 */
const ON_DEMAND_TESTS = ["test/on-demand/**/*.test.ts"];

/** Tests with brokers that need Java: run by `npm run test:brokers`, not by `npm test`. */
const BROKERS_TESTS = ["test/brokers/**/*.test.ts"];

/** Tests of everything that statements do, on a Citus of three nodes: run by `npx vitest run --project=citus`, not by `npm test`. */
const CITUS_TESTS = [
  "test/{admin,cache,citus,concurrency,contract,store}/**/*.test.ts",
  "test/doctor/citus-*.test.ts",
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

const POSTGRES_SETUP = "test/support/database/postgres-setup.ts";
const PGBOUNCER_SETUP = "test/support/database/pgbouncer-setup.ts";
const CITUS_SETUP = "test/support/database/citus-setup.ts";
const REDIS_SETUP = "test/support/redis/redis-setup.ts";
const RABBITMQ_SETUP = "test/support/brokers/rabbitmq-setup.ts";
const NATS_SETUP = "test/support/brokers/nats-setup.ts";

const PROGRAMS_SETUP = "test/support/deploy/programs-setup.ts";
const BROWSER_SETUP = "test/support/console/browser-setup.ts";
const CONSOLE_SETUP = "test/support/console/console-setup.ts";

const isCi = process.env.CI === "true";
const system15 = await findSystemPostgres(15, process.env.PATH);
if (isCi && system15 === undefined) throw new Error("PostgreSQL 15, the oldest supported, is not installed");
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
if (!hasOnDemand && process.argv.includes("--project=on demand")) {
  process.stderr.write(
    "Tests with large packages are skipped: `npm ci --prefix test/on-demand` installs them.\n",
  );
}

const CLIENT_SOURCE = fileURLToPath(new URL("clients/typescript/src/", import.meta.url));
const PROXY_SOURCE = fileURLToPath(new URL("clients/http-proxy/src/index.ts", import.meta.url));

/** The client's source: tests need no build. */
const shared = {
  resolve: {
    alias: [
      { find: /^@onceward\/client$/, replacement: `${CLIENT_SOURCE}index.ts` },
      { find: /^@onceward\/client\/(.*)$/, replacement: `${CLIENT_SOURCE}$1.ts` },
      { find: /^@onceward\/http-proxy$/, replacement: PROXY_SOURCE },
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
  "test/adapters/rpc/grpc.test.ts",
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

interface DatabaseProject {
  readonly name: string;
  readonly include: string[];
  readonly exclude?: string[];
  readonly globalSetup: string[];
  /** Encrypt results and checkpoints at rest. */
  readonly encrypted?: boolean;
  /** The `bin` directory of another Postgres than the packaged one. */
  readonly binaries?: string;
  /** Between the oldest and the newest supported Postgres: each statement is planned once. */
  readonly between?: boolean;
}

function databaseProject(project: DatabaseProject) {
  const {
    name,
    include,
    exclude = [],
    globalSetup,
    encrypted = false,
    binaries = "",
    between = false,
  } = project;
  return {
    ...shared,
    test: {
      name,
      include,
      exclude,
      globalSetup,
      provide: { postgresBinaries: binaries, isBetween: between, encrypted, citusWorkerUrls: [] },
      ...ISOLATION,
      ...BOUNDS,
    },
  };
}

/** All tests of the service on one PostgreSQL. @param binaries its `bin` directory; empty: the packaged 18's. */
function serviceProject(name: string, binaries = "") {
  return databaseProject({
    name,
    include: [...SERVICE_TESTS, ...COMMAND_TESTS],
    exclude: ["test/doctor/citus-*.test.ts"],
    globalSetup: [POSTGRES_SETUP, PGBOUNCER_SETUP, REDIS_SETUP, RABBITMQ_SETUP, NATS_SETUP],
    binaries,
  });
}

/** The project of `npm run test:postgres`: all tests of the service on another supported major. */
function otherPostgres(major: string | undefined) {
  if (major === undefined) return [];
  const packageName = MIDDLE_POSTGRES[`postgres ${major}` as keyof typeof MIDDLE_POSTGRES];
  const binaries =
    major === "15" ? system15 : packageName && packagedBinaries(packageName, ON_DEMAND_MANIFEST);
  if (binaries === undefined)
    throw new Error("ONCEWARD_TEST_POSTGRES is not 15, 16 or 17, or 15 is not installed");
  return [serviceProject("another postgres", binaries)];
}

interface PlainOptions {
  readonly globalSetup?: string[];
  readonly exclude?: string[];
}

function plainProject(
  name: string,
  include: string[],
  { globalSetup = [], exclude = [] }: PlainOptions = {},
) {
  return { ...shared, test: { name, include, exclude, globalSetup, ...ISOLATION, ...BOUNDS } };
}

export default defineConfig({
  test: {
    reporters: ["default", new RunReport(isCi)],
    // For two cores: many tests wait, for a lease, a failover or a process, and a worker with what it starts keeps half a core busy.
    maxWorkers: 4,
    projects: [
      plainProject(
        "unit",
        [
          "server/src/**/*.test.ts",
          "clients/*/src/**/*.test.ts",
          "deploy/site/**/*.test.ts",
          "test/{commands,repository,examples}/**/*.test.ts",
        ],
        { exclude: COMMAND_TESTS },
      ),
      plainProject("tools", TOOL_TESTS),
      databaseProject({
        name: "deploy",
        include: DEPLOY_TESTS,
        globalSetup: [POSTGRES_SETUP, REDIS_SETUP, PROGRAMS_SETUP],
      }),
      databaseProject({ name: "optional", include: OPTIONAL_TESTS, globalSetup: [POSTGRES_SETUP] }),
      databaseProject({
        name: "on demand",
        include: ifOnDemand(ON_DEMAND_TESTS),
        exclude: ["**/node_modules/**"],
        globalSetup: [POSTGRES_SETUP],
      }),
      databaseProject({
        name: "brokers",
        include: BROKERS_TESTS,
        globalSetup: [POSTGRES_SETUP, "test/brokers/setup.ts"],
      }),
      databaseProject({
        name: "console",
        include: CONSOLE_TESTS,
        globalSetup: [POSTGRES_SETUP, BROWSER_SETUP, CONSOLE_SETUP],
      }),
      plainProject("docs", DOCS_TESTS, { globalSetup: [BROWSER_SETUP] }),
      serviceProject("postgres 18"),
      ...otherPostgres(process.env.ONCEWARD_TEST_POSTGRES),
      databaseProject({
        name: "encrypted",
        include: ENCRYPTED_TESTS,
        globalSetup: [POSTGRES_SETUP],
        encrypted: true,
      }),
      {
        ...databaseProject({
          name: "older majors",
          include: ifOnDemand(OLDER_MAJORS_TESTS),
          globalSetup: [POSTGRES_SETUP, REDIS_SETUP, RABBITMQ_SETUP, NATS_SETUP],
        }),
        plugins: [olderMajors],
      },
      ...Object.entries(MIDDLE_POSTGRES).map(([name, packageName]) =>
        databaseProject({
          name,
          include: ifOnDemand(MIDDLE_POSTGRES_TESTS),
          globalSetup: [POSTGRES_SETUP],
          ...(hasOnDemand && { binaries: packagedBinaries(packageName, ON_DEMAND_MANIFEST) }),
          between: true,
        }),
      ),
      databaseProject({
        name: "citus",
        include: citusPostgres === undefined ? [] : CITUS_TESTS,
        exclude: NOT_ON_CITUS,
        globalSetup: [CITUS_SETUP, REDIS_SETUP, PROGRAMS_SETUP],
        ...(citusPostgres !== undefined && { binaries: citusPostgres }),
      }),
      ...(system15 === undefined
        ? []
        : [
            databaseProject({
              name: "postgres 15",
              include: OLDEST_POSTGRES_TESTS,
              globalSetup: [POSTGRES_SETUP],
              binaries: system15,
            }),
          ]),
    ],
  },
});
