import { CommandError } from "../commands/host.ts";
import { type Databases, onDatabase } from "../commands/schema.ts";
import type { Config } from "../config/config.ts";
import { DistributionRefused } from "./coordinator-session.ts";
import { distributeRecords, requireCoordinator } from "./distribute-records.ts";
import { undistributeRecords } from "./undistribute-records.ts";

/** An option of the command `migrate`, given as `--name`. */
export interface MigrateOption {
  readonly name: string;
  /** Called before the migrations. */
  readonly check?: (config: Config) => Promise<void>;
  /** Called after the migrations, or in their place. Returns lines to print. */
  readonly run: (config: Config) => Promise<readonly string[]>;
  readonly withMigrations: boolean;
}

/** Distributes the records over the nodes of a Citus, or copies them back. */
export const CITUS_OPTIONS: readonly MigrateOption[] = [
  {
    name: "citus",
    check: forCommand(requireCoordinator),
    run: forCommand((url) => distributeRecords(url)),
    withMigrations: true,
  },
  { name: "undistribute", run: forCommand(undistributeRecords), withMigrations: false },
];

/** Returns `work` on the database of the configuration, with its refusals as errors of a command. */
function forCommand<Answer>(
  work: (url: string) => Promise<Answer>,
): (databases: Databases) => Promise<Answer> {
  return (databases) =>
    onDatabase(databases, (url) =>
      work(url).catch((error: unknown) => {
        throw error instanceof DistributionRefused ? new CommandError(error.message) : error;
      }),
    );
}
