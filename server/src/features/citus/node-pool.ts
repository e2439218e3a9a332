import type { ShardsOptions } from "../../core/feature.ts";
import type { Pool } from "../../core/store/pool.ts";
import { joinStatements } from "./joined-statements.ts";
import type { ShardNode } from "./shard-map.ts";

/**
 * Connections of a replica to a node: two round trips of batches are in flight at most (`shards.ts`), and statements that
 * are sent again, each alone, need others.
 */
const MAX_CONNECTIONS = 4;

/**
 * Opens a pool for statements on the tables of shards that lie on a node.
 *
 * The user and options of the coordinator's database are those of the node, too.
 */
export function openNodePool(
  { databaseUrl, openPool }: Pick<ShardsOptions, "databaseUrl" | "openPool">,
  node: ShardNode,
): Pool {
  return joinStatements(
    openPool({
      databaseUrl: () => nodeUrl(databaseUrl(), node),
      size: MAX_CONNECTIONS,
      throughPgBouncer: false,
      onShards: true,
    }),
  );
}

/** Returns the URL of the same database on a node. A host that begins with "/" is the directory of a socket. */
export function nodeUrl(databaseUrl: string, { host, port }: ShardNode): string {
  const url = new URL(databaseUrl);
  url.searchParams.delete("host");
  url.searchParams.delete("port");
  if (host.startsWith("/")) url.searchParams.set("host", host);
  else url.hostname = host;
  url.port = String(port);
  return url.href;
}
