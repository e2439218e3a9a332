import { setTimeout as pause } from "node:timers/promises";
import { waitUntil } from "../../../../server/dev/embedded/wait.ts";
import type { ChaosPostgres } from "../../../support/database/chaos-postgres.ts";
import { WATCHED } from "../load/watch.ts";
import { type Fault, last, postgresFault, type Scene } from "./fault.ts";
import { END_BACKENDS } from "./postgres-process.ts";

const MAX_CONNECTIONS = 80;
const ROWS = 50;
const RECOVERY_TIMEOUT_MS = 3000;
const LOCK_TRIES = 20;
const LOCK_RETRY_MS = 500;
const LOCKED_MS = 30_000;

/** Faults in which Postgres refuses work, or can't do it. */
export const POSTGRES_REFUSAL_FAULTS: readonly Fault[] = [
  postgresFault("postgres-too-many-connections", async (postgres, scene) => {
    const taken = await takeConnections(postgres);
    // New connections find none free.
    await taken[0]?.query(END_BACKENDS);
    const more = await takeConnections(postgres);
    await last(scene, 1000, 3000);
    await Promise.all([...taken, ...more].map((client) => client.end()));
  }),
  postgresFault("postgres-read-only", async (postgres, scene) => {
    const set = async (value: "on" | "off") => {
      const client = await postgres.connect();
      await client.query("set default_transaction_read_only = off");
      await client.query("set transaction_read_only = off");
      await client.query(`alter system set default_transaction_read_only = ${value}`);
      await client.query("select pg_reload_conf()");
      await client.end();
    };
    await set("on");
    await last(scene, 1000, 3000);
    await set("off");
  }),
  postgresFault(
    "postgres-disk-full",
    async (postgres, scene) => {
      const { disk } = scene.rig;
      await disk.fill?.();
      await last(scene, 1000, 3000);
      await disk.empty();
      // Postgres ends if it can't write its log.
      const isBack = () => postgres.query("select 1").then(Boolean, () => false);
      if (!(await waitUntil(isBack, RECOVERY_TIMEOUT_MS))) await postgres.restart();
    },
    async ({ disk }) => (disk.fill === undefined ? "no disk can be mounted here" : undefined),
  ),
  {
    name: "postgres-row-locks",
    target: "rows",
    async inject(scene) {
      const client = await lockNewest(scene);
      await last(scene, LOCKED_MS);
      // If Postgres restarted in between, the locks are gone.
      await client.query("rollback").catch(() => {});
      await client.end();
    },
  },
];

async function takeConnections(postgres: ChaosPostgres) {
  const clients: Awaited<ReturnType<ChaosPostgres["connect"]>>[] = [];
  while (clients.length < MAX_CONNECTIONS) {
    const client = await postgres.connect().catch(() => undefined);
    if (client === undefined) break;
    clients.push(client);
  }
  return clients;
}

/**
 * Locks the newest rows; returns the connection that holds the locks. Retries while other faults prevent it.
 */
async function lockNewest({ rig: { postgres } }: Scene) {
  for (let attempt = 1; ; attempt++) {
    const client = await postgres.connect().catch(() => undefined);
    try {
      if (client === undefined) throw new Error("Postgres is unreachable");
      await client.query("begin");
      await client.query(
        `select 1 from records where (tenant_id, namespace, key) in
           (select tenant_id, namespace, key from records where namespace <> '${WATCHED}'
             order by claimed_at desc limit ${ROWS}) for update`,
      );
      return client;
    } catch (error) {
      await client?.end();
      if (attempt === LOCK_TRIES) throw error;
      await pause(LOCK_RETRY_MS);
    }
  }
}
