import { randomUUID } from "node:crypto";
import { renew } from "../background/installation-renewal.ts";
import { readConfig } from "../config/config.ts";
import { type InstallationLook, readInstallation } from "../store/installation.ts";
import { readHighestToken } from "../store/newest-tokens.ts";
import { openPool, type Pool } from "../store/pool.ts";
import { readServerFacts } from "../store/server-facts.ts";
import { readArguments } from "./arguments.ts";
import { CommandError, type Host } from "./host.ts";
import { requireSchema } from "./schema.ts";

/** A fencing token. Its 18 digits leave room for raising it. */
const TOKEN = /^\d{1,18}$/;

/**
 * `after-restore [--force] [--above TOKEN]`: prevents that tokens and ids are used twice after a restore of
 * the database or a promotion of a standby. Gives the installation a new id, which is part of the names of
 * cached completions, and raises the sequences of fencing tokens and ids above all used values.
 */
export async function afterRestore(host: Host): Promise<void> {
  const { force, above } = readArguments(host.args, {
    force: { type: "boolean", default: false },
    above: { type: "string", default: "0" },
  });
  if (!TOKEN.test(above)) throw new CommandError("--above must be a fencing token: at most 18 digits");
  const config = readConfig(host.env);
  await requireSchema(config);
  const pool = openPool({
    databaseUrl: config.DATABASE_URL,
    size: 1,
    throughPgBouncer: config.ONCEWARD_PGBOUNCER,
  });
  try {
    if (!force) await refuseWhileServed(pool);
    const inRows = await readHighestToken(pool);
    await renewOnce(pool, inRows > BigInt(above) ? inRows : BigInt(above));
    const { drawnToken } = await readWritable(pool);
    host.print(`The installation has a new id. New fencing tokens are above ${drawnToken}.`);
  } finally {
    await pool.close();
  }
}

async function refuseWhileServed(pool: Pool): Promise<void> {
  const { replicas } = await readServerFacts(pool);
  if (replicas === 0) return;
  throw new CommandError(
    `${replicas} replicas have reported within the last 10 s that they serve this database. Stop them first, or use --force: ` +
      "they drop their caches within 10 s.",
  );
}

async function renewOnce(pool: Pool, tokenFloor: bigint): Promise<void> {
  const { id } = await readWritable(pool);
  const renewal = { knownId: id, tokenFloor, actor: "onceward-server", reason: "", requestId: randomUUID() };
  if (await renew(pool, renewal)) return;
  throw new CommandError("A replica renewed the installation at the same time. Run the command again.");
}

/** @throws CommandError if the database is read-only. */
async function readWritable(pool: Pool): Promise<InstallationLook> {
  const installation = await readInstallation(pool);
  if (installation === undefined) throw new CommandError("The database is read-only: is it a standby?");
  return installation;
}
