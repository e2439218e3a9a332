import type { Pool } from "./pool.ts";

const readInstallation = { name: "read_installation", text: "select id from installation" };

/** Names this installation among all that share a Redis. */
export async function readInstallationId(pool: Pool): Promise<string> {
  const [row] = await pool.run<{ id: string }>(readInstallation, []);
  if (row === undefined) throw new Error("the installation has no id");
  return row.id;
}
