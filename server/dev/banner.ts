import type { Config } from "../src/config/config.ts";
import type { Addresses } from "../src/replica/server.ts";
import { DATA_DIR, type DevSecrets } from "./secrets.ts";

/** The tenant that `npm start` creates. */
export const DEMO_TENANT = "demo";

/** The namespace of the example, in which `npm run lab -- traffic` plants nothing. */
const EXAMPLE_NAMESPACE = "first-steps";

/**
 * Returns the lines that `npm start` prints once it serves: addresses, servers, keys, and an example: a claim, its
 * completion and a duplicate, as lines for bash or zsh that can be pasted again and again.
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
    "  Sign in on the command line, too; clients/cli/tenant-admins.md shows it in use:",
    "",
    `npm run --silent onceward -- login ${DEMO_TENANT} \\`,
    `  --address http://${host}:${addresses.grpcPort} --console ${http} \\`,
    `  --api-key-stdin < ${DATA_DIR}/admin.key`,
    "",
    "  Claim an order, complete it, and claim it again, as a duplicate does. Paste these lines into bash or zsh:",
    "",
    "order=order-$(date +%s)",
    `call() { curl -s ${http}/onceward.v1.IdempotencyService/$1 \\`,
    `  -H 'content-type: application/json' -H 'authorization: Bearer ${secrets.callerKey}' \\`,
    `  -d '{"namespace": "${EXAMPLE_NAMESPACE}", "key": "'$order'", '"$2"'}'; echo; }`,
    `claimed=$(call Claim '"owner": "worker-1"'); echo "$claimed"`,
    `token=$(grep -oE '[0-9]{16}' <<< "$claimed")`,
    `call Complete '"fencingToken": '$token', "result": {"kind": "KIND_SUCCESS", "payload": "${EXAMPLE_PAYLOAD}"}'`,
    `call Claim '"owner": "worker-2"'`,
    "",
    `  The first claim is granted: charge the card now. The last one gets the stored result, ${EXAMPLE_RESULT} in base64, and charges nothing.`,
    "",
    "Ctrl-C stops it.",
  ];
}

const EXAMPLE_RESULT = '{"id":"ch_1"}';
const EXAMPLE_PAYLOAD = Buffer.from(EXAMPLE_RESULT).toString("base64");

function inUrl(address: string): string {
  return address.includes(":") ? `[${address}]` : address;
}
