import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe } from "vitest";
import { prismaExecutor } from "../../clients/typescript/src/inbox.ts";
import {
  type CallerDatabase,
  createCallerDatabase,
  INSERT_EFFECT,
} from "../adapters/inbox/caller-database.ts";
import { describeExecutor } from "../adapters/inbox/executor-suite.ts";
import type { Transactions } from "../adapters/inbox/transactions.ts";

const run = promisify(execFile);
/** Of 306 MB: this is why the test is not part of `npm test`. */
const INSTALL_TIMEOUT_MS = 300_000;
const PACKAGES = ["prisma@7.10.1", "@prisma/client@7.10.0", "@prisma/adapter-pg@7.10.1"];
const SCHEMA = `
generator client {
  provider = "prisma-client-js"
}
datasource db {
  provider = "postgresql"
}
model Effect {
  id    Int    @id @default(autoincrement())
  key   String
  value String
  @@map("effects")
}
`;

/** The part of Prisma's generated client that the test calls. */
interface Prisma {
  $queryRawUnsafe(text: string, ...params: unknown[]): Promise<unknown>;
  $executeRawUnsafe(text: string, ...params: unknown[]): Promise<number>;
  $transaction<T>(work: (tx: Omit<Prisma, "$transaction">) => Promise<T>): Promise<T>;
  $disconnect(): Promise<void>;
}

const hasPackages = await run("npm", ["view", ...PACKAGES.slice(0, 1), "version"], { timeout: 30_000 }).then(
  () => true,
  () => false,
);
if (!hasPackages) process.stderr.write("The test of Prisma's executor is skipped: npm has no prisma.\n");

let database: CallerDatabase;
let project: string;

/** Installs Prisma into a project, and generates its client. */
async function install(): Promise<void> {
  database = await createCallerDatabase();
  project = await mkdtemp(join(tmpdir(), "ow-prisma-"));
  await writeFile(join(project, "package.json"), JSON.stringify({ private: true }));
  await writeFile(join(project, "schema.prisma"), SCHEMA);
  const options = {
    cwd: project,
    timeout: INSTALL_TIMEOUT_MS,
    // Not used with a driver adapter, and otherwise downloaded from a server that is not a registry.
    env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: "/bin/true", CHECKPOINT_DISABLE: "1" },
  };
  const flags = ["--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund"];
  await run("npm", ["install", ...flags, ...PACKAGES], options);
  await run(process.execPath, ["node_modules/prisma/build/index.js", "generate"], options);
}

function openPrisma(url: string): Transactions {
  const load = createRequire(join(project, "package.json"));
  const { PrismaPg } = load("@prisma/adapter-pg");
  const { PrismaClient } = load("@prisma/client");
  const prisma: Prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url, max: 4 }) });
  return {
    pool: prismaExecutor(prisma),
    transaction: (work) =>
      prisma.$transaction((tx) =>
        work({
          executor: prismaExecutor(tx),
          insertEffect: async (key, value) => {
            await tx.$executeRawUnsafe(INSERT_EFFECT, key, value);
          },
        }),
      ),
    [Symbol.asyncDispose]: () => prisma.$disconnect(),
  };
}

describe.runIf(hasPackages)("the inbox", () => {
  beforeAll(install, INSTALL_TIMEOUT_MS);

  afterAll(async () => {
    await database?.drop();
    await rm(project, { recursive: true, force: true });
  });

  describeExecutor("Prisma", () => database, openPrisma);
});
