import { expect, onTestFinished, test } from "vitest";
import { setClockAhead, useSettableClock } from "../support/database/clock.ts";
import { createDatabaseOfTest } from "../support/database/database.ts";
import { diagnoseDatabase } from "../support/doctor/diagnosis.ts";
import { startTestServer } from "../support/servers/server.ts";

test("a replica whose clock is wrong reports it, and doctor on another machine names the replica", async () => {
  const database = await createDatabaseOfTest();
  const now = Date.now;
  onTestFinished(() => {
    Date.now = now;
  });
  // The clock of the replica in this process; the database's stays.
  Date.now = () => now() + 7000;
  const server = await startTestServer(database.url, {}, { degradedLookMs: 10, heartbeatMs: 50 });
  onTestFinished(() => server.stop());
  const reported = () =>
    database.query<{ id: string }>("select id from replicas where degraded = '{clock_skewed}'");
  await expect.poll(async () => (await reported()).length).toBe(1);
  const [replica] = await reported();

  const clocks = async () =>
    (await diagnoseDatabase(database.url)).findings.filter(({ id }) => id === "clock_skewed");
  expect((await clocks()).map(({ summary }) => summary)).toEqual([
    expect.stringMatching(/^This machine's clock is [67]\.\d s ahead of the database's\.$/),
    `The clock of replica ${replica?.id} differs from the database's by more than 2 s.`,
  ]);
  Date.now = now;
  await expect.poll(async () => (await clocks()).length).toBe(0);
});

test("a replica reports that the database's clock was set, and doctor reports that alone", async () => {
  const database = await createDatabaseOfTest();
  await useSettableClock(database);
  const server = await startTestServer(database.url, {}, { degradedLookMs: 10, heartbeatMs: 50 });
  onTestFinished(() => server.stop());
  const clocks = async () =>
    (await diagnoseDatabase(database.url)).findings.map(({ id }) => id).filter((id) => id.includes("clock_"));
  expect(await clocks()).toEqual([]);
  await setClockAhead(database, 10);
  // Not that the machines' clocks are wrong, which differ from the database's now.
  await expect.poll(clocks).toEqual(["database_clock_moved"]);
  expect(server.log).toContainEqual(
    expect.objectContaining({ msg: "database clock jumped; retention follows the previous clock" }),
  );
});
