#!/usr/bin/env node
import { migrateCommand } from "./commands/migrate.ts";
import { serve } from "./commands/serve.ts";
import { afterRestore } from "./core/commands/after-restore.ts";
import type { Host } from "./core/commands/host.ts";
import { runCommand } from "./core/commands/process.ts";
import { operatorKey, tenantKey } from "./features/administration/commands/api-keys.ts";
import { doctor } from "./features/doctor/command.ts";
import { encryptionStatus } from "./features/encryption/encryption-status.ts";
import { exportTenant } from "./features/moving/export-tenant.ts";
import { importTenant } from "./features/moving/import-tenant.ts";

const COMMANDS: ReadonlyMap<string, (host: Host) => Promise<void>> = new Map([
  ["serve", serve],
  ["migrate", migrateCommand],
  ["after-restore", afterRestore],
  ["doctor", doctor],
  ["encryption-status", encryptionStatus],
  ["export-tenant", exportTenant],
  ["import-tenant", importTenant],
  ["operator-key", operatorKey],
  ["tenant-key", tenantKey],
]);

const USAGE = `onceward-server COMMAND

  serve                                     run a replica
  migrate [--check]                         bring the schema up to date, or only check it
  migrate --citus | --undistribute          distribute the records over a Citus, or copy them back to its coordinator
  after-restore [--force] [--above TOKEN]   prevent reuse of tokens and ids after a restore or a promotion
  doctor [--json]                           check the database, Redis and the replicas, and say what to do
  encryption-status                         count the records under each encryption key
  export-tenant --tenant NAME               refuse a tenant's calls and write its data to standard output, to move it
  import-tenant [--without-api-keys]        read a tenant from standard input into this installation, and serve it
  operator-key                              create an operator's API key and print it
  tenant-key --tenant NAME [--role admin]   create a tenant's API key, and the tenant if needed, and print the key

Configuration: environment variables, see server/README.md.`;

const [, , name = "", ...args] = process.argv;
const command = COMMANDS.get(name);
if (["help", "--help", "-h"].includes(name) || args.includes("--help") || args.includes("-h")) {
  process.stdout.write(`${USAGE}\n`);
} else if (command === undefined) {
  process.stderr.write(`${USAGE}\n`);
  process.exitCode = 2;
} else {
  await runCommand(command, args);
}
