import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/** `npm run test:brokers`: what needs brokers that `npm test` does without. See the README beside. */
export default defineConfig({
  root: fileURLToPath(new URL("../..", import.meta.url)),
  resolve: {
    alias: {
      "@onceward/client": fileURLToPath(new URL("../../clients/typescript/src/index.ts", import.meta.url)),
    },
  },
  test: {
    name: "brokers",
    include: ["test/brokers/**/*.test.ts"],
    globalSetup: ["test/helpers/database/postgres-setup.ts", "test/brokers/setup.ts"],
    provide: { postgresBinaries: "", isBetween: false, encrypted: false, citusWorkerUrls: [] },
    maxWorkers: 1,
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
