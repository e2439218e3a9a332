import { readMetrics } from "./metrics.ts";
import type { TestServer } from "./server.ts";

/** How many statements a server sent to Postgres during some work, by name; names that were not used are missing. */
export async function statementsDuring(
  server: TestServer,
  work: () => Promise<unknown>,
): Promise<Record<string, number>> {
  const before = await countStatements(server);
  await work();
  const after = await countStatements(server);
  const grown = [...after].map(([name, count]) => [name, count - (before.get(name) ?? 0)] as const);
  return Object.fromEntries(grown.filter(([, count]) => count > 0));
}

const COUNT_NAME = /^onceward_store_duration_seconds_count\{statement="(\w+)"\}$/;

async function countStatements(server: TestServer): Promise<ReadonlyMap<string, number>> {
  const metrics = await readMetrics(server);
  return new Map(
    [...metrics].flatMap(([name, count]) => {
      const statement = COUNT_NAME.exec(name)?.[1];
      return statement === undefined ? [] : [[statement, count] as const];
    }),
  );
}
