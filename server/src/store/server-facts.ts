import type { Runner } from "./pool.ts";

const readFacts = {
  name: "read_server_facts",
  text: `
select (select name from schema_migrations order by id desc limit 1) as schema_version,
       (select count(*) from replicas where seen_at > now() - interval '10 seconds')::int as replicas`,
};

/** What a database says of the service that works on it. */
export interface ServerFacts {
  /** The newest migration that it has seen. */
  readonly schemaVersion: string;
  /** How many replicas said lately that they are at work. */
  readonly replicas: number;
}

export async function readServerFacts(runner: Runner): Promise<ServerFacts> {
  const [row] = await runner.run<{ schema_version: string; replicas: number }>(readFacts, []);
  if (row === undefined) throw new Error("the database says nothing");
  return { schemaVersion: row.schema_version, replicas: row.replicas };
}
