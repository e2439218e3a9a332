import { readdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";

export const MIGRATIONS_DIR = fileURLToPath(new URL("../../migrations", import.meta.url));

/** Returns the names of the migrations of a directory, the oldest first: of those that this server contains if unset. */
export async function shippedMigrations(dir = MIGRATIONS_DIR): Promise<readonly string[]> {
  const files = await readdir(dir);
  return files
    .filter((file) => file.endsWith(".sql"))
    .map((file) => file.replace(/\.sql$/, ""))
    .sort();
}
