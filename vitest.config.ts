import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { findSystemPostgres } from "./server/dev/embedded/binaries.ts";

// For the tests' processes and all that they start.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL("node_modules/.cache/compiled", import.meta.url));

/** What statements and transactions answer: runs once per Postgres version that is there. */
const DATABASE_TESTS = ["test/{admin,contract,concurrency,store,adapters/inbox}/**/*.test.ts"];
/** What stands before the database or beside it, Redis and RabbitMQ among it: runs on one Postgres, whichever it is. */
const ONE_DATABASE_TESTS = [
  "test/{cache,cli,client,neighbours,outage,transports,adapters/{consumers,http,rpc}}/**/*.test.ts",
];

const POSTGRES_SETUP = "test/helpers/database/postgres-setup.ts";
const REDIS_SETUP = "test/helpers/redis/redis-setup.ts";
const RABBITMQ_SETUP = "test/helpers/brokers/rabbitmq-setup.ts";

const system15 = await findSystemPostgres(15, process.env.PATH);

const CLIENT_SOURCE = fileURLToPath(new URL("clients/typescript/src/", import.meta.url));

/** The client's source: tests need no build. */
const shared = {
  resolve: {
    alias: [
      { find: /^@onceward\/client$/, replacement: `${CLIENT_SOURCE}index.ts` },
      { find: /^@onceward\/client\/(.*)$/, replacement: `${CLIENT_SOURCE}$1.ts` },
    ],
  },
};

/** For tests of what works with two majors of a package: they import it by its name, and get the older one. */
const OLDER_MAJORS = { amqplib: "amqplib0", bullmq: "bullmq5", express: "express4", fastify: "fastify4" };
const OLDER_MAJORS_TESTS = [
  "test/adapters/http/{express,fastify}.test.ts",
  "test/adapters/consumers/{bullmq,rabbitmq}.test.ts",
];

/** Files leave nothing behind in their worker, and the next one finds the sources loaded: a fifth of the run. */
const ISOLATION = { isolate: false };

/** Aliases by which each package's whole name is another's. */
function aliasesOf(names: Readonly<Record<string, string>>) {
  return Object.entries(names).map(([name, replacement]) => ({ find: new RegExp(`^${name}$`), replacement }));
}

interface DatabaseProject {
  readonly name: string;
  readonly include: string[];
  readonly globalSetup: string[];
  /** A directory with another Postgres than the packaged one. */
  readonly binaries?: string;
}

function databaseProject({ name, include, globalSetup, binaries = "" }: DatabaseProject) {
  return {
    ...shared,
    test: {
      name,
      include,
      globalSetup,
      provide: { postgresBinaries: binaries },
      ...ISOLATION,
      testTimeout: 20_000,
      hookTimeout: 60_000,
    },
  };
}

export default defineConfig({
  test: {
    // Two cores: a third worker only makes the others late.
    maxWorkers: 2,
    projects: [
      {
        ...shared,
        test: {
          name: "unit",
          ...ISOLATION,
          include: [
            "server/src/**/*.test.ts",
            "clients/*/src/**/*.test.ts",
            "test/{embedded,commands,repository,packaging,examples,demo,bench,history,chaos}/**/*.test.ts",
          ],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      databaseProject({
        name: "postgres 18",
        include: [...DATABASE_TESTS, ...ONE_DATABASE_TESTS],
        globalSetup: [POSTGRES_SETUP, REDIS_SETUP, RABBITMQ_SETUP],
      }),
      {
        ...databaseProject({
          name: "older majors",
          include: OLDER_MAJORS_TESTS,
          globalSetup: [POSTGRES_SETUP, REDIS_SETUP, RABBITMQ_SETUP],
        }),
        resolve: { alias: [...shared.resolve.alias, ...aliasesOf(OLDER_MAJORS)] },
      },
      ...(system15 === undefined
        ? []
        : [
            databaseProject({
              name: "postgres 15",
              include: DATABASE_TESTS,
              globalSetup: [POSTGRES_SETUP],
              binaries: system15,
            }),
          ]),
    ],
  },
});
