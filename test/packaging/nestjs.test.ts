import { execFile } from "node:child_process";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { compile, linkPackages, usePackedClient } from "../support/packages/packed-client.ts";

const run = promisify(execFile);
const APP = fileURLToPath(new URL("nestjs/", import.meta.url));
const NPM_TIMEOUT_MS = 180_000;
const SUITE_TIMEOUT_MS = 60_000;

const packed = usePackedClient();

// Nest 10 has Express 4 and Fastify 4, Nest 11 has Express 5 and Fastify 5. The newest major is tested in test/adapters/http/nestjs.test.ts. These majors can't be installed beside it, because
// their packages need each other by name.
test.each(["10.0.0", "11"])(
  "beside NestJS %s, decorated routes are guarded on Express and Fastify",
  async (version) => {
    const { project } = packed();
    const parts = ["common", "core", "platform-express", "platform-fastify"].map(
      (part) => `@nestjs/${part}@${version}`,
    );
    const args = ["install", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund"];
    await run("npm", [...args, ...parts, "rxjs", "reflect-metadata"], {
      cwd: project,
      timeout: NPM_TIMEOUT_MS,
    });
    const app = join(project, "app");
    await cp(APP, app, { recursive: true });
    await linkPackages(project, ["@types/node"]);
    expect(await compile(app)).toEqual([]);
    const suite = run(process.execPath, ["--test-reporter=tap", join(app, "out/app.js")], {
      cwd: project,
      timeout: SUITE_TIMEOUT_MS,
    });
    const { stdout, stderr } = await suite.catch((failed: { stdout: string; stderr: string }) => failed);
    expect(stdout.match(/^# (?:pass|fail) \d+/gm), stdout + stderr).toEqual(["# pass 2", "# fail 0"]);
  },
  2 * NPM_TIMEOUT_MS,
);
