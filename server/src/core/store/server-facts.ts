import type { Runner } from "./pool.ts";

const readFacts = {
  name: "read_server_facts",
  text: `
select (select name from schema_migrations order by id desc limit 1) as "schemaVersion",
       (select count(*) from replicas where seen_at > now() - interval '10 seconds')::int as replicas`,
};

/** The state of the service as its database holds it. */
export interface ServerFacts {
  /** The newest migration that ran. */
  readonly schemaVersion: string;
  /** The number of live replicas. */
  readonly replicas: number;
}

/** Reads the schema version and the number of live replicas. */
export async function readServerFacts(runner: Runner): Promise<ServerFacts> {
  const [row] = await runner.run<ServerFacts>(readFacts, []);
  if (row === undefined) throw new Error("read_server_facts returned no row");
  return row;
}
