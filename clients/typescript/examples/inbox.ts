/**
 * `npm run example -- inbox`: effects that are rows in the consumer's own Postgres. The record that an event was handled
 * commits together with its invoice, so that no crash can separate them. Then a worker is killed after its commit,
 * before it completes the claim: the completion has committed, too, and a relay delivers it to the service.
 */

import { spawn } from "node:child_process";
import { once as onceEmitted } from "node:events";
import { createOnceward } from "@onceward/client";
import { completeIn, INBOX_MIGRATION, once, pgExecutor, startRelay } from "@onceward/client/inbox";
import pg from "pg";
import { findDatabase } from "./database-setup.ts";
import { findService, prove } from "./setup.ts";

const EVENTS = 40;
const NAMESPACE = "example-inbox";

const onceward = createOnceward(await findService());
const database = await findDatabase();
const pool = new pg.Pool({ connectionString: database.url, max: 10 });

async function transaction<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query("begin");
    const value = await work(client);
    await client.query("commit");
    return value;
  } catch (error) {
    await client.query("rollback");
    throw error;
  } finally {
    client.release();
  }
}

async function insertInvoice(client: pg.PoolClient, order: string): Promise<string> {
  const insert = "insert into example_invoices (order_id) values ($1) returning id";
  return (await client.query<{ id: string }>(insert, [order])).rows[0]?.id ?? "";
}

async function countInvoices(orders: readonly string[]): Promise<number> {
  const count = "select count(*)::int as invoices from example_invoices where order_id = any($1)";
  return (await pool.query<{ invoices: number }>(count, [orders])).rows[0]?.invoices ?? 0;
}

/** Delivers an event once; some deliveries are rolled back after all writes. */
async function deliver(key: string, fails: boolean): Promise<"handled" | "replayed" | "failed"> {
  try {
    return await transaction(async (client) => {
      const message = { consumer: "billing", key };
      const { replayed } = await once(pgExecutor(client), message, () => insertInvoice(client, key));
      if (fails) throw new Error("the connection was lost before the commit");
      return replayed ? "replayed" : "handled";
    });
  } catch {
    return "failed";
  }
}

/** Runs in a process of its own, which is killed between its commit and the completion. */
function workAndDie(key: string): Promise<string> {
  return onceward.run({ namespace: NAMESPACE, key }, async (claim) => {
    await transaction((client) => completeIn(pgExecutor(client), claim, () => insertInvoice(client, key)));
    process.kill(process.pid, "SIGKILL");
    return await new Promise<never>(() => {});
  });
}

async function handleEvents(): Promise<void> {
  const events = Array.from({ length: EVENTS }, () => crypto.randomUUID());
  const deliveries = events.flatMap((key) => [deliver(key, true), deliver(key, false), deliver(key, false)]);
  const outcomes = await Promise.all(deliveries);
  prove("deliveries were rolled back", outcomes.filter((outcome) => outcome === "failed").length, EVENTS);
  prove("deliveries handled their event", outcomes.filter((outcome) => outcome === "handled").length, EVENTS);
  prove("deliveries were duplicates", outcomes.filter((outcome) => outcome === "replayed").length, EVENTS);
  prove("invoices were written", await countInvoices(events), EVENTS);
}

async function surviveDeath(): Promise<void> {
  const key = crypto.randomUUID();
  const worker = spawn(process.execPath, [...process.execArgv, import.meta.filename, key], {
    stdio: "inherit",
  });
  await onceEmitted(worker, "exit");
  await using _relay = startRelay({ onceward, database: pgExecutor(pool), pollMs: 100 });
  const { value, replayed } = await onceward.runDetailed(
    { namespace: NAMESPACE, key },
    () => "invoiced again",
  );
  prove(
    "worker was killed between its commit and its completion",
    worker.signalCode === "SIGKILL" ? 1 : 0,
    1,
  );
  prove("repeat got the worker's invoice", replayed && value !== "invoiced again" ? 1 : 0, 1);
  prove("invoice was written", await countInvoices([key]), 1);
}

const [, , keyOfWorker] = process.argv;
if (keyOfWorker !== undefined) {
  await workAndDie(keyOfWorker);
} else {
  await pool.query(INBOX_MIGRATION);
  await pool.query(
    "create table if not exists example_invoices (id bigint generated always as identity, order_id text not null)",
  );
  await handleEvents();
  await surviveDeath();
}

await pool.end();
await database.stop();
await onceward.close();
