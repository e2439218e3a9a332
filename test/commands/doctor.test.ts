import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { useOwnPostgres } from "../support/database/own-postgres.ts";
import { failed } from "../support/processes/cli.ts";
import { createWorkplace, runCommand } from "../support/processes/command.ts";
import { runHere } from "../support/processes/run-here.ts";
import { settingsFor } from "../support/processes/serve.ts";

const postgres = useOwnPostgres({});

test("doctor exits with 0, 1, 2 or 3, by the most severe finding", async () => {
  const url = await postgres.createDatabase();
  const workplace = await createWorkplace();
  const settings = settingsFor(url);
  const doctor = (env: Readonly<Record<string, string>> = {}, ...args: string[]) =>
    runHere(["doctor", ...args], { ...settings, ...env });

  const unmigrated = await runCommand(["doctor"], workplace, settings);
  expect(unmigrated.exit).toBe(2);
  expect(unmigrated.stdout).toMatch(
    /^error {4}schema_behind\n {9}The schema lacks 0001_initial, .*\n {9}Run: onceward-server migrate\n {9}deploy\/runbook\.md#schema_behind\n/,
  );

  await runHere(["migrate"], settings);
  const fine = await doctor();
  expect(fine).toMatchObject({ exit: 0, stderr: "" });
  expect(fine.stdout).toMatch(/^info {5}audit_changeable$/m);

  const control = new pg.Client({ connectionString: url });
  await control.connect();
  onTestFinished(() => control.end());
  await control.query(`alter database ${new URL(url).pathname.slice(1)} set deadlock_timeout = '100ms'`);
  const warned = await doctor({}, "--json");
  expect(warned).toMatchObject({ exit: 1, stderr: "" });
  expect(JSON.parse(warned.stdout)).toMatchObject({
    findings: expect.arrayContaining([
      expect.objectContaining({ id: "deadlock_timeout_short", severity: "warning" }),
    ]),
    passed: expect.arrayContaining(["schema"]),
    skipped: [],
  });

  const away = await doctor({ DATABASE_URL: "postgresql://nobody@127.0.0.1:1/none" });
  expect(away).toMatchObject({ exit: 2, stdout: expect.stringMatching(/^skipped {2}engine, schema, /m) });
  const malformed = await doctor({ DATABASE_URL: "nowhere" });
  expect(malformed).toMatchObject(
    failed(3, /^doctor could not run\.\n {2}because: .*\n.*DATABASE_URL must be/),
  );
  expect(await doctor({}, "--yaml")).toMatchObject({ exit: 3, stdout: "" });
});
