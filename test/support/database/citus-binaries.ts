import { execFile } from "node:child_process";
import { access } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { findSystemPostgres } from "../../../server/dev/embedded/binaries.ts";

const run = promisify(execFile);

/** The versions of PostgreSQL that Citus 13 can extend: https://docs.citusdata.com/en/stable/reference/common_errors.html */
const POSTGRES_VERSIONS = [15, 16, 17] as const;

/** Returns the `bin` directory of an installed PostgreSQL with the extension citus; undefined if there is none. */
export async function findCitusPostgres(path = ""): Promise<string | undefined> {
  for (const version of POSTGRES_VERSIONS) {
    const binDir = await findSystemPostgres(version, path);
    if (binDir !== undefined && (await hasCitus(binDir))) return binDir;
  }
  return undefined;
}

async function hasCitus(binDir: string): Promise<boolean> {
  try {
    const { stdout } = await run(join(binDir, "pg_config"), ["--sharedir"]);
    await access(join(stdout.trim(), "extension", "citus.control"));
    return true;
  } catch {
    return false;
  }
}
