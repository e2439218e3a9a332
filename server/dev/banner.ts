import type { Config } from "../src/core/config/config.ts";
import type { Addresses } from "../src/server.ts";
import type { DevSecrets } from "./secrets.ts";

/** The tenant that `npm start` creates. */
export const DEMO_TENANT = "demo";

/**
 * Returns the lines that `npm start` prints once it serves: addresses, servers, keys, and an example call.
 */
export function devBanner(
  config: Config,
  addresses: Addresses,
  secrets: DevSecrets,
  backing: { readonly postgres: string; readonly redis: string },
): readonly string[] {
  const host = inUrl(config.ONCEWARD_HOST);
  const managementHost = inUrl(config.ONCEWARD_MANAGEMENT_HOST ?? config.ONCEWARD_HOST);
  const scheme = config.ONCEWARD_TLS_CERT === undefined ? "http" : "https";
  const http = `${scheme}://${host}:${addresses.httpPort}`;
  return [
    "",
    "Onceward is serving.",
    "",
    `  gRPC (health, reflection)   ${host}:${addresses.grpcPort}`,
    `  Connect, gRPC-Web, JSON     ${http}`,
    `  Console                     ${http}/console/`,
    `  livez, readyz, metrics      ${scheme}://${managementHost}:${addresses.managementPort}`,
    `  Postgres                    ${backing.postgres}`,
    `  Redis                       ${backing.redis}`,
    "",
    `  Tenant "${DEMO_TENANT}"`,
    `    caller's key   ${secrets.callerKey}`,
    `    admin's key    ${secrets.adminKey}`,
    `  Operator's key   ${secrets.operatorKey}`,
    "",
    "  Open the console and sign in with the admin's key, or the operator's.",
    "",
    "  Store the admin's key for the command line; clients/cli/tenant-admins.md shows it in use:",
    "",
    `npm run --silent onceward -- profile set ${DEMO_TENANT} \\`,
    `  --address http://${host}:${addresses.grpcPort} --api-key-stdin < .onceward/admin.key`,
    "",
    "  Claim order 1; a second claim is answered that the key is in progress:",
    "",
    `curl -s ${http}/onceward.v1.IdempotencyService/Claim \\`,
    `  -H 'content-type: application/json' -H 'authorization: Bearer ${secrets.callerKey}' \\`,
    `  -d '{"namespace": "charges", "key": "order-1"}'`,
    "",
    "Ctrl-C stops it.",
  ];
}

function inUrl(address: string): string {
  return address.includes(":") ? `[${address}]` : address;
}
