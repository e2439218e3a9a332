import { randomUUID } from "node:crypto";
import { configuredPeppers, pepperMark } from "../../core/auth/pepper.ts";
import { readArguments } from "../../core/commands/arguments.ts";
import { CommandError, type Host } from "../../core/commands/host.ts";
import { requirePepper } from "../../core/commands/pepper.ts";
import { requireSchema } from "../../core/commands/schema.ts";
import { type Config, readConfig } from "../../core/config/config.ts";
import { openPool } from "../../core/store/pool.ts";
import { readServerFacts } from "../../core/store/replicas.ts";
import { encryptionOf } from "./export-tenant.ts";
import { storeTenant } from "./store/import-tenant.ts";
import { MAX_LINE_BYTES, type MovedLine, parseLine, type TenantLine } from "./store/moved-tenant.ts";

/**
 * `import-tenant [--without-api-keys]`: stores a tenant that `export-tenant` writes to this command's standard
 * input, in one transaction, and serves it. Values are encrypted with this installation's keys; API keys keep
 * their secrets if both installations have the same pepper.
 */
export async function importTenant(host: Host): Promise<void> {
  const options = { "without-api-keys": { type: "boolean", default: false } } as const;
  const withoutApiKeys = readArguments(host.args, options)["without-api-keys"];
  const config = readConfig(host.env);
  await requireSchema(config);
  await requirePepper(config);
  // A long transaction does not go through a pooler.
  const databaseUrl = config.DATABASE_DIRECT_URL ?? config.DATABASE_URL;
  const lines = readLines(host.input);
  const { value: tenant } = await lines.next();
  if (tenant?.kind !== "tenant") throw new CommandError("Standard input is not an export of a tenant.");
  await requireSameSchema(databaseUrl, tenant);
  if (!withoutApiKeys && !hasPepper(config, tenant)) {
    throw new CommandError(
      "The installations have different values of ONCEWARD_API_KEY_PEPPER, so no API key would be valid here. " +
        "Import with --without-api-keys, and create new ones.",
    );
  }
  const imported = await storeTenant({
    databaseUrl,
    tenant,
    lines,
    without: new Set(withoutApiKeys ? ["api_keys"] : []),
    encryption: encryptionOf(config),
    requestId: randomUUID(),
  }).catch((cause: unknown) => {
    throw new CommandError("The tenant could not be imported; nothing was stored.", { cause });
  });
  switch (imported.kind) {
    case "imported":
      host.print(`Tenant ${tenant.name} is served here, with ${imported.records} records.`);
      return;
    case "name_taken":
      throw new CommandError(`This installation has a tenant ${tenant.name} already.`);
    default:
      imported satisfies never;
  }
}

function hasPepper(config: Config, tenant: TenantLine): boolean {
  const { current, second } = configuredPeppers(config);
  return [current, second].some(
    (pepper) => pepper !== undefined && pepperMark(pepper).toString("hex") === tenant.pepperMark,
  );
}

async function requireSameSchema(databaseUrl: string, { schemaVersion }: TenantLine): Promise<void> {
  const pool = openPool({ databaseUrl, size: 1, throughPgBouncer: false });
  try {
    const own = (await readServerFacts(pool)).schemaVersion;
    if (own === schemaVersion) return;
    throw new CommandError(
      `The other installation's schema is ${schemaVersion}, this one's ${own}. Upgrade the older one first.`,
    );
  } finally {
    await pool.close();
  }
}

/** Reads lines of at most MAX_LINE_BYTES. @throws Error for a longer or a malformed line. */
async function* readLines(input: AsyncIterable<Uint8Array>): AsyncGenerator<MovedLine, undefined> {
  let parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of input) {
    let rest = chunk;
    for (let end = rest.indexOf(0x0a); end >= 0; end = rest.indexOf(0x0a)) {
      yield parseLine(Buffer.concat([...parts, rest.subarray(0, end)]).toString());
      rest = rest.subarray(end + 1);
      parts = [];
      bytes = 0;
    }
    parts.push(rest);
    bytes += rest.byteLength;
    if (bytes > MAX_LINE_BYTES) throw new Error(`a line is longer than ${MAX_LINE_BYTES} bytes`);
  }
}
