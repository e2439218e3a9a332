import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

/** A site of another origin, on this machine. It ends with the test. */
export interface ForeignSite {
  /** Another origin, but the same site: cookies ignore ports, so that browsers send SameSite cookies from here. */
  readonly sameSite: string;
  /** Another site. */
  readonly crossSite: string;
}

/** Starts a site with an empty page, whose scripts and forms a test adds. */
export async function startForeignSite(): Promise<ForeignSite> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/html" });
    response.end('<!doctype html><html lang="en"><title>Foreign</title><body>');
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { sameSite: `http://127.0.0.1:${port}`, crossSite: `http://localhost:${port}` };
}
