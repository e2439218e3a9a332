import { CommandError } from "../../core/commands/host.ts";
import { type Databases, onDatabase } from "../../core/commands/schema.ts";
import { DistributionRefused } from "./coordinator-session.ts";
import { distributeRecords, requireCoordinator } from "./distribute-records.ts";
import { undistributeRecords } from "./undistribute-records.ts";

/**
 * Checks that the database, which may be empty, is that of a coordinator of Citus with all its nodes.
 *
 * @throws CommandError if it is not, or if it cannot be used.
 */
export function requireCitus(databases: Databases): Promise<void> {
  return onDatabase(databases, refusing(requireCoordinator));
}

/**
 * Distributes the records over the workers of a Citus, and returns what was done.
 *
 * @throws CommandError if they cannot be distributed, or if the database cannot be used.
 */
export function runDistribution(databases: Databases): Promise<readonly string[]> {
  return onDatabase(
    databases,
    refusing((url) => distributeRecords(url)),
  );
}

/**
 * Copies the records of a Citus back to its coordinator, and returns what was done.
 *
 * @throws CommandError if they cannot be copied, or if the database cannot be used.
 */
export function runUndistribution(databases: Databases): Promise<readonly string[]> {
  return onDatabase(databases, refusing(undistributeRecords));
}

/** Returns `work` with its refusals as errors of a command. */
function refusing<Answer>(work: (url: string) => Promise<Answer>): (url: string) => Promise<Answer> {
  return async (url) => {
    try {
      return await work(url);
    } catch (error) {
      throw error instanceof DistributionRefused ? new CommandError(error.message) : error;
    }
  };
}
