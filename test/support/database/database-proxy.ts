import { onTestFinished } from "vitest";
import { socketOf } from "../network/sockets.ts";
import { startTcpProxy, type TcpProxy } from "../network/tcp-proxy.ts";

export { socketOf } from "../network/sockets.ts";

/** A database behind a proxy, which is closed when the test ends. */
export interface ProxiedDatabase {
  readonly proxy: TcpProxy;
  /** The URL of the database through the proxy. */
  readonly url: string;
}

/**
 * Starts a proxy between the test's server and its Postgres. `onRequest` receives the bytes that the server
 * sends.
 */
export async function proxyDatabase(
  databaseUrl: string,
  onRequest?: (bytes: Buffer) => void,
): Promise<ProxiedDatabase> {
  const proxy = await startTcpProxy(socketOf(databaseUrl), onRequest);
  onTestFinished(() => proxy.close());
  const { username, pathname } = new URL(databaseUrl);
  return { proxy, url: `postgresql://${username}@127.0.0.1:${proxy.port}${pathname}` };
}
