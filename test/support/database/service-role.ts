import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";

const FILE = new URL("../../../deploy/postgres/service-role.sql", import.meta.url);

/**
 * Creates a role of the test's own with the rights of deploy/postgres/service-role.sql, because roles are shared by
 * all databases. `test/deploy/service-role.test.ts` runs the whole file, with psql.
 *
 * @returns the role's name and the URL of the database for it.
 */
export async function createServiceRole(database: {
  readonly url: string;
  query(text: string): Promise<unknown>;
}): Promise<{ readonly role: string; readonly url: string }> {
  const role = `service_${randomBytes(4).toString("hex")}`;
  const [, grants] = /^(grant usage on schema[\s\S]*)^commit;/m.exec(await readFile(FILE, "utf8")) ?? [];
  if (grants === undefined) throw new Error("deploy/postgres/service-role.sql grants nothing");
  await database.query(`create role onceward_service login;\n${grants}`.replaceAll("onceward_service", role));
  const url = new URL(database.url);
  url.username = role;
  return { role, url: url.href };
}
