import { operatorKey, tenantKey } from "../admin/keys/commands.ts";
import { doctor } from "../doctor/doctor.ts";
import { encryptionStatus } from "../encryption/encryption-status.ts";
import { exportHistory } from "../history-export/export-history.ts";
import { exportTenant } from "../moving/export-tenant.ts";
import { importTenant } from "../moving/import-tenant.ts";
import type { Host } from "./host.ts";
import { MIGRATE_OPTION_NAMES, migrate } from "./migrate.ts";
import { serve } from "./serve.ts";

/** A command of `onceward-server`. */
interface Command {
  readonly name: string;
  /** Its arguments, as the usage shows them. */
  readonly synopsis?: string;
  /** One line of the usage. */
  readonly summary: string;
  readonly run: (host: Host) => Promise<void>;
}

/** The commands of `onceward-server`, in the order of its usage. */
export const COMMANDS: readonly Command[] = [
  { name: "serve", summary: "run a replica", run: serve },
  {
    name: "migrate",
    synopsis: `[${MIGRATE_OPTION_NAMES.map((name) => `--${name}`).join(" | ")}]`,
    summary:
      "bring the schema up to date, or only check it; distribute the records over a Citus, or copy them back",
    run: migrate,
  },
  { name: "operator-key", summary: "create an operator's API key and print it", run: operatorKey },
  {
    name: "tenant-key",
    synopsis: "--tenant NAME [--role admin]",
    summary: "create a tenant's API key, and the tenant if needed, and print the key",
    run: tenantKey,
  },
  {
    name: "encryption-status",
    summary: "count the records under each encryption key",
    run: encryptionStatus,
  },
  {
    name: "export-tenant",
    synopsis: "--tenant NAME",
    summary: "refuse a tenant's calls and write its data to standard output, to move it",
    run: exportTenant,
  },
  {
    name: "import-tenant",
    synopsis: "[--without-api-keys]",
    summary: "read a tenant from standard input into this installation, and serve it",
    run: importTenant,
  },
  {
    name: "export-history",
    synopsis: "--to DIRECTORY | s3://BUCKET/PREFIX | https://… [--tenant NAME] [--results] [--slot NAME]",
    summary: "write what happens to keys as CloudEvents, from Postgres' log, until stopped",
    run: exportHistory,
  },
  {
    name: "doctor",
    synopsis: "[--json]",
    summary: "check the database, Redis and the replicas, and show what to do",
    run: doctor,
  },
];
