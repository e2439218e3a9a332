import { expect, test } from "vitest";
import { Finding_Severity } from "../../clients/typescript/src/gen/onceward/v1/operator_pb.ts";
import { useCliWorld } from "../support/processes/cli-world.ts";

// The tests' Postgres is fast, not durable.
const UNSAFE = ["fsync_off", "synchronous_commit_off"];

const world = useCliWorld({ ONCEWARD_POOL_SIZE: "2" });

test("Diagnose returns what the replica finds, with what to do and where to read on", async () => {
  const { findings, passed, skipped } = await (await world().operator()).diagnose({});
  const expected = [...UNSAFE, "full_page_writes_off", "audit_changeable", "standby_missing"];
  expect(findings.map(({ id }) => id).filter((id) => id !== "postgres_minor_outdated")).toEqual(expected);
  expect(findings[0]).toMatchObject({
    id: "fsync_off",
    severity: Finding_Severity.ERROR,
    summary: "fsync is off: a crash of the machine can lose or corrupt everything.",
    advice: "Set fsync = on.",
    runbook: "deploy/runbook.md#fsync_off",
  });
  expect(passed).toContain("pooler");
  expect(skipped).toEqual([]);
});

test("concurrent calls share one examination", async () => {
  const operator = await world().operator();
  const connections = () =>
    world().database.query<{ total: string }>(
      "select sessions::text as total from pg_stat_database where datname = current_database()",
    );
  const count = async () => Number((await connections())[0]?.total);
  const before = await count();
  await Promise.all(Array.from({ length: 20 }, () => operator.diagnose({})));
  // An examination opens two connections, and the test's own may be counted late.
  await expect.poll(count).toBeGreaterThan(before);
  expect((await count()) - before).toBeLessThan(20);
});

test("onceward operator doctor prints the findings, and its exit code says how severe they are", async () => {
  const cli = await world().operatorCli();
  const { exit, stdout, stderr } = await cli("operator", "doctor");
  expect({ exit, stderr }).toEqual({ exit: 6, stderr: "" });
  expect(stdout).toMatch(
    /^error {4}fsync_off\n {9}fsync is off.*\n {9}Set fsync = on\.\n {9}deploy\/runbook\.md#fsync_off$/m,
  );
  expect(stdout).toMatch(/^ok {7}engine, schema, .*backlog$/m);
  const asJson = await cli("operator", "doctor", "--json");
  expect(asJson.exit).toBe(6);
  const { findings } = JSON.parse(asJson.stdout);
  expect(findings[0]).toMatchObject({ id: "fsync_off", severity: "SEVERITY_ERROR" });
  expect(findings.length).toBeGreaterThan(4);
});
