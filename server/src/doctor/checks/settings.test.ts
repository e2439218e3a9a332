import { expect, test } from "vitest";
import { judgeSettings, NEWEST_MINORS, type PostgresSettings } from "./settings.ts";

const SOUND = {
  server_version: `15.${NEWEST_MINORS[15]}`,
  server_version_num: String(150_000 + (NEWEST_MINORS[15] ?? 0)),
  in_hot_standby: "off",
  default_transaction_read_only: "off",
  default_transaction_isolation: "read committed",
  fsync: "on",
  full_page_writes: "on",
  synchronous_commit: "on",
  autovacuum: "on",
  deadlock_timeout: "1000",
} as PostgresSettings;

test("settings of initdb on Postgres 15 are sound", () => {
  expect(judgeSettings(SOUND)).toEqual([]);
});

test("a Postgres older than 15 is not supported", () => {
  const old = { ...SOUND, server_version: "14.22", server_version_num: "140022" };
  expect(judgeSettings(old)).toEqual([
    {
      id: "postgres_version_unsupported",
      summary: "Postgres is version 14.22; the oldest supported one is 15.",
    },
  ]);
});

test("a minor version that is not the newest known one of its major is named", () => {
  const summaryOf = (major: number, minor: number) => {
    const server_version_num = String(10_000 * major + minor);
    return judgeSettings({ ...SOUND, server_version: `${major}.${minor}`, server_version_num });
  };
  for (const [major, newest] of Object.entries(NEWEST_MINORS)) {
    expect(summaryOf(Number(major), newest)).toEqual([]);
    expect(summaryOf(Number(major), newest + 1)).toEqual([]);
    expect(summaryOf(Number(major), newest - 1)).toEqual([
      {
        id: "postgres_minor_outdated",
        summary: `Postgres is version ${major}.${newest - 1}; ${major}.${newest} has been released.`,
      },
    ]);
  }
  expect(summaryOf(99, 0)).toEqual([]);
});
