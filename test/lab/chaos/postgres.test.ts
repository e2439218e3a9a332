import { setImmediate as turn } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ChaosPostgres, startChaosPostgres } from "../../support/database/chaos-postgres.ts";
import { type Disk, mountDisk } from "../../support/processes/small-disk.ts";

let disk: Disk;
let postgres: ChaosPostgres;
const moves: string[] = [];

beforeAll(async () => {
  disk = await mountDisk();
  postgres = await startChaosPostgres(disk.dir, (url) => void moves.push(url));
  await postgres.query("create table kept (number int)");
});

afterAll(async () => {
  await postgres?.[Symbol.asyncDispose]();
  await disk?.[Symbol.asyncDispose]();
});

const keep = (number: number) => postgres.query("insert into kept values ($1)", [number]);
const kept = async () =>
  (await postgres.query<{ number: number }>("select number from kept order by number")).map(
    (row) => row.number,
  );
const timeline = async () =>
  (
    await postgres.query<{ timeline: string }>(
      "select left(pg_walfile_name(pg_current_wal_lsn()), 8) as timeline",
    )
  )[0]?.timeline;

test("a server stops although a backend still works for a client", async () => {
  const other = await startChaosPostgres(disk.dir, () => {});
  const client = await other.connect();
  const working = client.query("select pg_sleep(600)").catch(() => "ended");
  await expect
    .poll(() => other.query("select from pg_stat_activity where query like 'select pg_sleep%'"))
    .toHaveLength(1);
  await other[Symbol.asyncDispose]();
  expect(await Promise.race([working, turn("at work")])).toBe("ended");
});

test("acknowledged rows survive a kill", async () => {
  await keep(1);
  await postgres.kill();
  await expect(postgres.query("select 1")).rejects.toThrow();
  await postgres.restart();
  expect(await kept()).toEqual([1]);
  expect(moves).toEqual([postgres.url]);
});

test("a synchronous standby takes over with all acknowledged rows, repeatedly", async () => {
  for (const [number, expected] of [
    [2, "00000002"],
    [3, "00000003"],
  ] as const) {
    await postgres.addStandby();
    await keep(number);
    await postgres.failOver();
    expect(await timeline()).toBe(expected);
  }
  expect(await kept()).toEqual([1, 2, 3]);
  expect(moves.at(-1)).toBe(postgres.url);
});
