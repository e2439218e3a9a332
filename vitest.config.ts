import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { findSystemPostgres } from "./server/src/embedded/binaries.ts";

/** Needs a database: runs once per Postgres version that is there. */
const DATABASE_TESTS = ["test/{contract,concurrency,outage,store,client}/**/*.test.ts"];

const system15 = await findSystemPostgres(15, process.env.PATH);

/** The client's source: tests need no build. */
const shared = {
  resolve: {
    alias: { "@onceward/client": fileURLToPath(new URL("clients/typescript/src/index.ts", import.meta.url)) },
  },
};

function databaseProject(name: string, binaries?: string) {
  return {
    ...shared,
    test: {
      name,
      include: DATABASE_TESTS,
      globalSetup: ["test/helpers/postgres-setup.ts"],
      provide: { postgresBinaries: binaries ?? "" },
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
          include: [
            "server/src/**/*.test.ts",
            "clients/*/src/**/*.test.ts",
            "test/{embedded,commands,repository,demo}/**/*.test.ts",
          ],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      databaseProject("postgres 18"),
      ...(system15 === undefined ? [] : [databaseProject("postgres 15", system15)]),
    ],
  },
});
