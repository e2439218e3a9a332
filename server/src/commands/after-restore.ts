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

/** What a fencing token looks like: 18 digits leave room for it to be raised. */
const TOKEN = /^\d{1,18}$/;

/**
 * `after-restore [--force] [--above TOKEN]`: makes sure that nothing is given out a second time after the database was restored
 * or a standby was promoted. The installation gets another id, by which copies are named, and the sequences of fencing tokens
 * and of ids are raised beyond what was given out.
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
    const { drawnToken } = await look(pool);
    host.print(`The installation has another id, and fencing tokens go on above ${drawnToken}.`);
  } finally {
    await pool.close();
  }
}

async function refuseWhileServed(pool: Pool): Promise<void> {
  const { replicas } = await readServerFacts(pool);
  if (replicas === 0) return;
  throw new CommandError(
    `${replicas} replicas said within the last 10 s that they serve this database. Stop them first, or use --force: they ` +
      "drop what they know of the time before within 10 s.",
  );
}

async function renewOnce(pool: Pool, tokenFloor: bigint): Promise<void> {
  const { id } = await look(pool);
  const renewal = { knownId: id, tokenFloor, actor: "onceward-server", reason: "", requestId: randomUUID() };
  if (await renew(pool, renewal)) return;
  throw new CommandError("A replica renewed the installation at the same moment. Run the command again.");
}

async function look(pool: Pool): Promise<InstallationLook> {
  const seen = await readInstallation(pool);
  if (seen === undefined) throw new CommandError("The database takes no writes: is it a standby?");
  return seen;
}
