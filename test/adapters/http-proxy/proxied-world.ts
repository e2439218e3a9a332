import { createServer, type RequestListener, type Server } from "node:http";
import { createOnceward } from "@onceward/client";
import { type ProxyLoad, type ProxyTls, parseConfig, startProxy } from "@onceward/http-proxy";
import { onTestFinished } from "vitest";
import type { TestDatabase } from "../../support/database/database.ts";
import type { TestServer } from "../../support/servers/server.ts";
import { createTenant } from "../../support/servers/tenants.ts";
import { type HttpRequest, send } from "../http/http-client.ts";
import { listen } from "../http/listen.ts";

/** Every test's configuration: guarded routes of one namespace. */
export const ROUTES = `routes:
  - path: /charges/:id
    namespace: charges
    caller: { apiKey: authorization }
    maxBodyBytes: 100
    timeoutMs: 60000
  - path: /slow
    namespace: charges
    caller: { constant: all }
    timeoutMs: 50
  - path: /acp
    namespace: charges
    profile: acp
    caller: { constant: all }
    ignore: [/sentAt]
`;

/** What differs from most tests. */
interface WorldOptions {
  readonly prepare?: (upstream: Server) => void;
  readonly routes?: string;
  readonly tls?: ProxyTls;
  readonly maxLoad?: ProxyLoad;
  readonly trustForwardedProto?: boolean;
  /** Another key than the tenant's. */
  readonly apiKey?: string;
}

/** An upstream service in this process behind a proxy in this process. */
export async function startWorld(
  { database, server }: { readonly database: TestDatabase; readonly server: TestServer },
  listener: RequestListener,
  { prepare = () => {}, routes = ROUTES, tls, maxLoad, trustForwardedProto, apiKey }: WorldOptions = {},
) {
  const upstream = createServer(listener);
  prepare(upstream);
  const app = await listen(upstream);
  const tenant = await createTenant(database, { on_lease_expiry: "HOLD" });
  const onceward = createOnceward({
    address: `http://127.0.0.1:${server.grpcPort}`,
    apiKey: apiKey ?? tenant.apiKey,
  });
  const warnings: string[] = [];
  const proxy = await startProxy({
    onceward,
    upstream: new URL(`http://127.0.0.1:${app.port}`),
    routes: parseConfig(routes, "routes.yaml"),
    tls,
    trustForwardedProto,
    listen: { host: "127.0.0.1", port: 0 },
    management: { host: "127.0.0.1", port: 0 },
    warn: (line) => warnings.push(line),
    ...(maxLoad && { maxLoad }),
  });
  onTestFinished(async () => {
    upstream.closeAllConnections();
    await proxy.close(0);
    if (upstream.listening) await app.close();
    await onceward.close();
  });
  return {
    proxy,
    upstream,
    tenant,
    warnings,
    /** What a process of the command line needs to reach Onceward. */
    environment: {
      ONCEWARD_ADDRESS: `http://127.0.0.1:${server.grpcPort}`,
      ONCEWARD_API_KEY: tenant.apiKey,
    },
    charge: ({ headers, ...request }: HttpRequest = {}) =>
      send(proxy.port, {
        ...request,
        headers: { authorization: "Bearer secret-token", "idempotency-key": '"order-1"', ...headers },
      }),
    metrics: async () =>
      (await send(proxy.managementPort, { method: "GET", path: "/metrics" })).body.toString(),
    async expireLeases() {
      const earlier = "lease_expires_at = now() - interval '1 s'";
      await database.query(
        `update records set ${earlier} where tenant_id = $1 and lease_expires_at > now()`,
        [tenant.id],
      );
    },
    records: () =>
      database.query<{ key: string }>("select key from records where tenant_id = $1", [tenant.id]),
  };
}
