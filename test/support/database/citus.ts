import pg from "pg";
import { distributeRecords } from "../../../server/src/citus/distribute-records.ts";
import { withConnection } from "../../../server/src/database/connection.ts";
import { migrate } from "../../../server/src/database/migrate.ts";
import { runStatements } from "./statement-runner.ts";

/** Enough for statements of one shard and of several, on both workers. Citus' default of 32 takes longer. */
const SHARDS = 4;

/** A database of the same name on each node of a Citus. */
export interface CitusDatabase {
  readonly coordinatorUrl: string;
  readonly workerUrls: readonly string[];
}

/**
 * Makes empty databases of the nodes one Citus, with the schema, and with the records distributed. A copy of a
 * template would lack the connections between the nodes' databases.
 */
export async function makeCitus({ coordinatorUrl, workerUrls }: CitusDatabase): Promise<void> {
  await Promise.all(
    [coordinatorUrl, ...workerUrls].map((url) => runStatements(url, "create extension citus")),
  );
  await addNodes({ coordinatorUrl, workerUrls });
  await migrate(coordinatorUrl, () => {});
  await distributeRecords(coordinatorUrl, { shards: SHARDS });
}

/**
 * Adds the workers to the coordinator, one database at a time. Adding a node writes the roles, which all databases of the
 * node share, and a concurrent writer of the same role fails ("tuple concurrently updated"); the coordinator then
 * reports a failed connection.
 */
export async function addNodes({ coordinatorUrl, workerUrls }: CitusDatabase): Promise<void> {
  await oneAtATime(coordinatorUrl, "add nodes", () =>
    runStatements(
      coordinatorUrl,
      `select citus_set_coordinator_host(${addressOf(coordinatorUrl)})`,
      ...workerUrls.map((url) => `select citus_add_node(${addressOf(url)})`),
    ),
  );
}

/**
 * Copies records by logical replication, one database at a time: the replication slots have the same names in all databases
 * of a node ("replication slot already exists").
 */
export function copyAlone<Answer>(coordinatorUrl: string, copy: () => Promise<Answer>): Promise<Answer> {
  return oneAtATime(coordinatorUrl, "copy records", copy);
}

async function oneAtATime<Answer>(
  coordinatorUrl: string,
  name: string,
  work: () => Promise<Answer>,
): Promise<Answer> {
  const maintenance = new URL(coordinatorUrl);
  maintenance.pathname = "/postgres";
  // Advisory locks are those of one database: of one that all tests share.
  const locker = new pg.Client({ connectionString: maintenance.href });
  await locker.connect();
  try {
    await locker.query("select pg_advisory_lock(hashtext($1))", [name]);
    return await work();
  } finally {
    await locker.end();
  }
}

/** Returns the directory of a node's socket, or its host, and its port, as SQL. */
export function addressOf(nodeUrl: string): string {
  const url = new URL(nodeUrl);
  return `'${url.searchParams.get("host") ?? url.hostname}', ${url.port}`;
}

/**
 * Tells a node under which name it reaches itself: the directory of its socket. Also trusts the library with which
 * Citus copies shards, where Postgres asks for that (PostgreSQL 15.20 does).
 */
export async function nameItself(url: string): Promise<void> {
  const settings = await withConnection({ connectionString: url }, (client) =>
    client.query("select from pg_settings where name = 'output_plugin_libraries'"),
  );
  if (settings.rowCount) {
    await runStatements(url, "alter system set output_plugin_libraries = 'pgoutput', 'citus'");
  }
  await runStatements(
    url,
    `alter system set citus.local_hostname = '${new URL(url).searchParams.get("host")}'`,
    "select pg_reload_conf()",
  );
}
