import { spawn, spawnSync } from "node:child_process";
import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { readConfig } from "../../server/src/config/config.ts";
import { destinationOf } from "../../server/src/history-export/destinations.ts";
import { createWorkplace } from "../support/processes/command.ts";
import { settingsFor } from "../support/processes/serve.ts";
import { freePort } from "../support/redis/redis.ts";

const hasGateway = spawnSync("versitygw", ["--version"]).status === 0;
if (!hasGateway)
  process.stderr.write(
    "The export to S3 is skipped: go install github.com/versity/versitygw/cmd/versitygw@v1.8.0\n",
  );

test.runIf(hasGateway)("lines reach an S3 that checks signatures; wrong keys are refused", async () => {
  const { dir } = await createWorkplace();
  await mkdir(join(dir, "history"));
  const endpoint = `127.0.0.1:${await freePort()}`;
  const gateway = spawn("versitygw", [
    "--access",
    "a",
    "--secret",
    "right",
    "--port",
    endpoint,
    "posix",
    dir,
  ]);
  onTestFinished(() => void gateway.kill());
  await vi.waitUntil(() => fetch(`http://${endpoint}`).catch(() => false), { timeout: 30_000 });
  const exportWith = (secret: string) => {
    const keys = {
      AWS_ACCESS_KEY_ID: "a",
      AWS_SECRET_ACCESS_KEY: secret,
      AWS_ENDPOINT_URL_S3: `http://${endpoint}`,
    };
    const config = readConfig({ ...settingsFor("postgresql://localhost/none"), ...keys });
    const line = (text: string, tenant: string) => ({ text, tenant, day: "2026-01-31", position: "0A" });
    const lines = [line("1", "acme"), line("ü", "acme"), line("2", "other")];
    return destinationOf("s3://history/a b", config).write(lines, AbortSignal.timeout(60_000));
  };
  await exportWith("right");
  expect(await readFile(join(dir, "history/a b/acme/2026-01-31/0A.jsonl"), "utf8")).toBe("1\nü\n");
  expect(await readdir(join(dir, "history/a b"))).toEqual(["acme", "other"]);
  await expect(exportWith("wrong")).rejects.toThrow(/answered 403: [\s\S]*SignatureDoesNotMatch/);
});
