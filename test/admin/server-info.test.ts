import { readdir } from "node:fs/promises";
import { expect, test } from "vitest";
import { VERSION } from "../../server/src/version.ts";
import { describeAdministrationOverAll } from "../support/calls/admin.ts";
import { TEST_PEPPER } from "../support/servers/server.ts";

const MIGRATIONS = new URL("../../server/migrations/", import.meta.url);

describeAdministrationOverAll("GetServerInfo", { env: { ONCEWARD_POOL_SIZE: "7" } }, (world) => {
  test("returns the versions of the server and the schema, and the number of live replicas", async () => {
    const operator = await world().operator();
    const migrations = (await readdir(MIGRATIONS)).filter((name) => name.endsWith(".sql")).sort();
    await world().database.query(
      `insert into replicas (id, version, seen_at) values
         (gen_random_uuid(), 'other', now() - interval '9 seconds'),
         (gen_random_uuid(), 'gone', now() - interval '11 seconds')`,
    );
    const info = await operator.getServerInfo({});
    expect(info).toMatchObject({ version: VERSION, degraded: [], replicas: 2 });
    expect(`${info.schemaVersion}.sql`).toBe(migrations.at(-1));
    await world().database.query("delete from replicas where version in ('other', 'gone')");
  });

  test("shows the environment variables in force as text that can be set again, without secrets", async () => {
    const { config } = await (await world().operator()).getServerInfo({});
    expect(config).toMatchObject({
      DATABASE_URL: "(secret)",
      ONCEWARD_API_KEY_PEPPER: "(secret)",
      ONCEWARD_HOST: "127.0.0.1",
      ONCEWARD_POOL_SIZE: "7",
      ONCEWARD_DRAIN_DELAY: "0ms",
      ONCEWARD_CONNECTION_AGE: "1800000ms",
      ONCEWARD_PGBOUNCER: "false",
    });
    expect(config).not.toHaveProperty("REDIS_URL");
    expect(JSON.stringify(config)).not.toContain(TEST_PEPPER);
    expect(JSON.stringify(config)).not.toContain("postgres://");
  });
});

// A port without a listener.
describeAdministrationOverAll(
  "GetServerInfo of a server whose Redis is unreachable",
  { env: { REDIS_URL: "redis://127.0.0.1:1" } },
  (world) => {
    test("names the parts that it works without", async () => {
      const operator = await world().operator();
      const degraded = async () => (await operator.getServerInfo({})).degraded;
      await expect.poll(degraded).toEqual(["redis_bypassed"]);
    });
  },
);
