import { onTestFinished } from "vitest";
import { startTcpProxy, type TcpProxy } from "./tcp-proxy.ts";

/** A database behind a proxy, gone when the test is. */
export interface ProxiedDatabase {
  readonly proxy: TcpProxy;
  /** The database through the proxy. */
  readonly url: string;
}

/** The path of the Unix socket that a database URL of an embedded Postgres leads to. */
export function socketOf(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  return `${url.searchParams.get("host")}/.s.PGSQL.${url.port || 5432}`;
}

/** Puts a proxy between the test's server and its Postgres. `onRequest` is shown what the server sends. */
export async function proxyDatabase(
  databaseUrl: string,
  onRequest?: (bytes: Buffer) => void,
): Promise<ProxiedDatabase> {
  const proxy = await startTcpProxy(socketOf(databaseUrl), onRequest);
  onTestFinished(() => proxy.close());
  const { username, pathname } = new URL(databaseUrl);
  return { proxy, url: `postgresql://${username}@127.0.0.1:${proxy.port}${pathname}` };
}
