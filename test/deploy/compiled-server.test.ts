import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { useOwnPostgres } from "../support/database/own-postgres.ts";
import { compileImageProgram } from "../support/processes/image-program.ts";
import { settingsFor } from "../support/processes/serve.ts";
import { startProcessOfTest } from "../support/servers/use-server.ts";

const postgres = useOwnPostgres();

test("compiled, as the image runs it, the server migrates and serves", async () => {
  const program = await compileImageProgram();
  expect(program.at(-1)).toMatch(/\.js$/);
  const settings = settingsFor(await postgres.createDatabase());
  await promisify(execFile)(process.execPath, [...program, "migrate"], { env: { ...settings } });
  const server = await startProcessOfTest(settings.DATABASE_URL ?? "", {}, [...program, "serve"]);
  const { status } = await fetch(`http://127.0.0.1:${server.managementPort}/readyz`);
  expect(status).toBe(200);
});
