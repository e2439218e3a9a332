import { setTimeout as pause } from "node:timers/promises";
import { pathOf } from "../../../support/network/raw-grpc.ts";
import { openSocket } from "../../../support/network/raw-socket.ts";
import type { ServerProcess } from "../../../support/servers/server-process.ts";
import { createApiKey } from "../../../support/servers/tenants.ts";
import { measureCosts } from "../../fuzz/costs.ts";
import type { Figure } from "../figure.ts";

const MAX_STALL_MS = 50;
const CONNECTIONS = 60;
const MIB = 1024 * 1024;
/** Just below the largest message allowed. */
const MESSAGE_BYTES = 4 * MIB - 1000;
/** Long enough for the server to read all that it reads; a request may take half a minute to arrive. */
const SETTLE_MS = 5000;
const SAMPLE_EVERY_MS = 100;

/**
 * Measures P13, the most harm by one caller: the longest stall by one request, and memory taken by unfinished
 * ones.
 */
export const measureHostility: Figure = async ({ rig, options, progress }) => {
  await using station = await rig.startStation({ stallProbe: true });
  const { server, database, tenant } = station;
  const keys = {
    CALLER: tenant.apiKey,
    TENANT_ADMIN: await createApiKey(database, { role: "TENANT_ADMIN", tenantId: tenant.id }),
    OPERATOR: await createApiKey(database, { role: "OPERATOR" }),
  };
  const isMeasured = ({ name }: { readonly name: string }) =>
    !options.quick || ["Complete", "Batch"].includes(name);
  const how = { by: "longestStallMs", suspectMs: MAX_STALL_MS / 2, isMeasured } as const;
  progress("unfinished messages");
  const withMiB = await addedMiB(server, keys.CALLER, options.quick);
  const withoutMiB = await addedMiB(server, undefined, options.quick);
  progress("costly requests without a credential");
  const without = await measureCosts({ server, apiKeyOf: () => undefined }, how);
  progress("costly requests with a credential");
  const withOne = await measureCosts({ server, apiKeyOf: (role) => keys[role] }, how);
  const longest = [...without, ...withOne].reduce((a, b) => (b.ms > a.ms ? b : a));
  const longestWithout = Math.max(...without.map(({ ms }) => ms));
  return [
    {
      figure: "P13",
      part: "stall",
      what: `longest stall by one request: ${longest.what}`,
      value: longest.ms,
      unit: "ms",
      bar: { atMost: MAX_STALL_MS },
      raw: { requests: without.length + withOne.length, "without a credential ms": longestWithout },
    },
    {
      figure: "P13",
      part: "unfinished",
      what: `server RSS added by ${CONNECTIONS} connections of unfinished messages`,
      value: Math.max(withMiB, withoutMiB),
      unit: "MiB",
      bar: { atMost: 64 },
      raw: { "without a credential MiB": withoutMiB },
    },
  ];
};

/**
 * Returns the most MiB that the server gains while each connection has sent a message without its last byte.
 */
async function addedMiB(server: ServerProcess, apiKey: string | undefined, quick: boolean): Promise<number> {
  const head = [
    `POST ${pathOf("Batch")} HTTP/1.1`,
    "host: a",
    "content-type: application/proto",
    `content-length: ${MESSAGE_BYTES + 1}`,
    ...(apiKey === undefined ? [] : [`authorization: Bearer ${apiKey}`]),
  ];
  const request = Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`), Buffer.alloc(MESSAGE_BYTES)]);
  const before = await server.rssMb();
  let most = before;
  const sockets = await Promise.all(Array.from({ length: CONNECTIONS }, () => openSocket(server.httpPort)));
  for (const { send } of sockets) void send(request);
  const endMs = performance.now() + (quick ? SETTLE_MS / 5 : SETTLE_MS);
  while (performance.now() < endMs) {
    await pause(SAMPLE_EVERY_MS);
    most = Math.max(most, await server.rssMb());
  }
  for (const { socket } of sockets) socket.destroy();
  return most - before;
}
