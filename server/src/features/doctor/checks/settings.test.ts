import { expect, test } from "vitest";
import { judgeSettings, type PostgresSettings } from "./settings.ts";

const SOUND = {
  server_version: "15.0",
  server_version_num: "150000",
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
