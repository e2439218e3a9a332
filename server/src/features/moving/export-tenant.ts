import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { pepperMark } from "../../core/auth/pepper.ts";
import { readArguments } from "../../core/commands/arguments.ts";
import { CommandError, type Host } from "../../core/commands/host.ts";
import { requireSchema } from "../../core/commands/schema.ts";
import { withPool } from "../../core/commands/with-pool.ts";
import { type Config, readConfig } from "../../core/config/config.ts";
import { NO_KEYS, parseKeyring } from "../../core/config/keyring.ts";
import { NAMESPACE_PATTERN, NAMESPACE_RULE } from "../../core/domain/limits.ts";
import { POLICY_SETTLES_MS } from "../../core/domain/statement-times.ts";
import type { TenantResource } from "../../core/domain/tenant.ts";
import type { Pool } from "../../core/store/pool.ts";
import type { RecordValues } from "../../core/store/records/record-values.ts";
import { readServerFacts } from "../../core/store/server-facts.ts";
import { insertAuditEvents } from "../../core/store/tenants/audit-events.ts";
import { lockTenant, updateTenant } from "../../core/store/tenants/tenants.ts";
import { createRecordEncryption } from "../encryption/record-encryption.ts";
import {
  exportPlainRows,
  exportRecords,
  findMovingTenant,
  type MovingTenant,
} from "./store/export-tenant.ts";
import { type MovedLine, tenantLineOf } from "./store/moved-tenant.ts";

/**
 * `export-tenant --tenant NAME`: refuses the tenant's calls with TENANT_MOVING, waits until every replica does
 * so, and writes the tenant's settings, keys, usage and records to standard output, results in plain form. It
 * can be repeated. `onceward operator tenants resume` ends a move that is given up.
 */
export async function exportTenant(host: Host): Promise<void> {
  const { tenant: name = "" } = readArguments(host.args, { tenant: { type: "string" } });
  if (!NAMESPACE_PATTERN.test(name)) throw new CommandError(`--tenant ${NAMESPACE_RULE}`);
  const config = readConfig(host.env);
  await requireSchema(config);
  await withPool(config, async (pool) => {
    const { id } = await startMove(pool, name);
    const moving = await untilRefused(pool, id, host);
    let lines = 0;
    const write = async (line: MovedLine) => await host.write(`${JSON.stringify(line)}\n`);
    await write(await firstLine(pool, config, name, moving));
    for await (const line of linesOf(pool, id, encryptionOf(config))) {
      lines++;
      await write(line);
    }
    await requireUnbroken(pool, id, moving);
    await write({ kind: "end", lines });
    host.report(
      `Exported ${lines} rows of tenant ${name}. Its calls are refused here until it is deleted or resumed.`,
    );
  });
}

const POLL_MS = 500;

/** Marks the tenant as moving, with an audit event, unless it is marked. @throws CommandError if there is no such tenant. */
async function startMove(pool: Pool, name: string): Promise<TenantResource> {
  return await pool.transaction(async (transaction) => {
    const was = await lockTenant(transaction, name);
    if (was === undefined || was.state === "DELETING") throw new CommandError(`There is no tenant ${name}.`);
    if (was.state === "MOVING") return was;
    await insertAuditEvents(transaction, [
      {
        tenant: was,
        actor: "onceward-server",
        action: "ExportTenant",
        target: `tenant ${name}`,
        before: { state: was.state },
        after: { state: "MOVING" },
        requestId: randomUUID(),
        calls: 1,
      },
    ]);
    return await updateTenant(transaction, { ...was, state: "MOVING" });
  });
}

/**
 * Waits until every replica refuses the tenant's calls. This process' own clock counts the wait, also of a tenant that was moving
 * already: by a database clock that was set ahead meanwhile, replicas that still grant claims would have refused them for long.
 *
 * @throws CommandError if a record job of the tenant is unfinished: it would be lost; if the tenant is resumed.
 */
async function untilRefused(pool: Pool, tenantId: number, host: Host): Promise<MovingTenant> {
  const startedAtMs = performance.now();
  host.report(`Waiting for ${POLICY_SETTLES_MS / 1000} s until every replica refuses the tenant's calls.`);
  let moving = await findMovingTenant(pool, tenantId);
  for (;;) {
    if (moving.since === "") throw new CommandError(RESUMED);
    const leftMs = POLICY_SETTLES_MS - (performance.now() - startedAtMs);
    if (leftMs <= 0) break;
    await pause(Math.min(leftMs, POLL_MS));
    moving = await findMovingTenant(pool, tenantId);
  }
  if (moving.unfinishedJobs > 0) {
    throw new CommandError(
      `${moving.unfinishedJobs} record jobs of the tenant are unfinished. Export it again once they are finished or cancelled.`,
    );
  }
  return moving;
}

const RESUMED = "The tenant was resumed during the export, which is therefore not complete. Export it again.";

/**
 * Checks that the tenant's calls were refused until all rows were read: otherwise the rows lack what was granted.
 *
 * @throws CommandError if the tenant was resumed meanwhile.
 */
async function requireUnbroken(pool: Pool, tenantId: number, { since }: MovingTenant): Promise<void> {
  if ((await findMovingTenant(pool, tenantId)).since !== since) throw new CommandError(RESUMED);
}

async function firstLine(pool: Pool, config: Config, name: string, moving: MovingTenant): Promise<MovedLine> {
  const { schemaVersion } = await readServerFacts(pool);
  return tenantLineOf({
    name,
    schemaVersion,
    pepperMark: pepperMark(config.ONCEWARD_API_KEY_PEPPER).toString("hex"),
    tokenFloor: String(moving.tokenFloor),
    row: moving.row,
  });
}

async function* linesOf(pool: Pool, tenantId: number, encryption: RecordValues): AsyncGenerator<MovedLine> {
  yield* exportPlainRows(pool, tenantId);
  yield* exportRecords(pool, tenantId, encryption);
}

/** Returns the encryption of records with the configured keys. */
export function encryptionOf({ ONCEWARD_ENCRYPTION_KEYS: keys }: Config): RecordValues {
  return createRecordEncryption(parseKeyring(keys ?? "") ?? NO_KEYS, () => {});
}
