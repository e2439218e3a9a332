import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { describe, expect, onTestFinished, test } from "vitest";
import { newDir } from "../support/new-dir.ts";
import { CHILD_ENVIRONMENT } from "../support/processes/child-environment.ts";
import { randomFor } from "../support/seed.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";

/** Published MCP servers of payment providers, unmodified, in front of a fake of the provider: clients/mcp-servers.md. */

const { database, server } = useServer();
const random = randomFor("payment-servers");
const PROXY = fileURLToPath(new URL("../../clients/mcp-proxy/src/main.ts", import.meta.url));
/** By default so many that some of the killed calls have charged. */
const { ONCEWARD_TEST_ORDERS: length = 32 } = process.env;
const ORDERS = Array.from({ length: Number(length) }, (_, index) => `order-${index}`);
/** Sessions that work off the orders at the same time. */
const LANES = 4;
/** A kill comes at most so long after the call: most calls take less. */
const MAX_KILL_DELAY_MS = 80;
/** The provider takes up to so long before a charge, and after it. */
const MAX_PROVIDER_DELAY_MS = 20;

/** Leads each TLS connection of a server's process to the fake provider, and notes the process's id. */
const TO_FAKE = `data:text/javascript,${encodeURIComponent(`
import { writeFileSync } from "node:fs";
import net from "node:net";
import tls from "node:tls";
const connect = net.connect;
tls.connect = () => {
  const socket = connect(Number(process.env.FAKE_PORT), "127.0.0.1");
  return socket.once("connect", () => socket.emit("secureConnect"));
};
writeFileSync(process.env.PID_FILE, String(process.pid));
`)}`;

interface PaymentServer {
  readonly name: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** A call that charges an order, as a model makes it: with a new key each time, if the tool asks for one. */
  readonly call: (order: string) => { readonly name: string; readonly arguments: Record<string, unknown> };
  readonly policy: object;
}

const packageFile = (path: string) => fileURLToPath(new URL(`./node_modules/${path}`, import.meta.url));

const SERVERS: readonly PaymentServer[] = [
  {
    name: "square-mcp-server",
    args: [packageFile("square-mcp-server/dist/index.js"), "start"],
    env: { ACCESS_TOKEN: "token", SANDBOX: "true" },
    call: (order) => ({
      name: "make_api_request",
      arguments: {
        service: "payments",
        method: "create",
        request: {
          idempotency_key: randomUUID(),
          source_id: "cnon:card-nonce-ok",
          amount_money: { amount: 100, currency: "USD" },
          reference_id: order,
        },
      },
    }),
    policy: {
      key: ["/service", "/method", "/request/reference_id"],
      keyArgument: "/request/idempotency_key",
      onCrash: "policy",
      leaseMs: 1000,
    },
  },
  {
    name: "@twilio-alpha/mcp",
    args: [
      packageFile("@twilio-alpha/mcp/build/index.js"),
      "AC0123456789abcdef0123456789abcdef/SK0123456789abcdef0123456789abcdef:secret",
    ],
    env: {},
    call: (order) => ({
      name: "TwilioApiV2010--CreatePayments",
      arguments: {
        CallSid: "CA0123456789abcdef0123456789abcdef",
        IdempotencyKey: randomUUID(),
        StatusCallback: "https://shop.example/paid",
        ChargeAmount: 1,
        Description: order,
      },
    }),
    policy: { key: ["/Description"], keyArgument: "/IdempotencyKey", onCrash: "policy", leaseMs: 1000 },
  },
];

/** A provider that charges once for each key, as providers do. Its ledger has the key of each request. */
async function startProvider() {
  const ledger = new Map(ORDERS.map((order) => [order, { keys: [] as string[], charges: 0 }]));
  const charged = new Set<string>();
  const provider = createServer(async (request, response) => {
    const body = await text(request);
    const account = ledger.get(`${/order-\d+/.exec(body)}`);
    // In JSON, or a form.
    const [, key] = /idempotency_?key"?[:=]"?([\w-]+)/i.exec(body) ?? [];
    if (account === undefined || key === undefined) throw new Error(`unexpected: ${request.url} ${body}`);
    account.keys.push(key);
    await sleep(random.below(MAX_PROVIDER_DELAY_MS));
    if (!charged.has(key)) account.charges++;
    charged.add(key);
    await sleep(random.below(MAX_PROVIDER_DELAY_MS));
    response.writeHead(200, { "content-type": "application/json" }).end('{"status": "COMPLETED"}');
  }).listen(0, "127.0.0.1");
  await once(provider, "listening");
  onTestFinished(() => {
    provider.closeAllConnections();
    provider.close();
  });
  const { port } = provider.address() as AddressInfo;
  return { port, accounts: () => [...ledger.values()] };
}

interface Session {
  call(order: string): Promise<unknown>;
  kill(which: "host's child" | "server"): Promise<void>;
}

/** Starts a server behind the proxy, or alone. */
async function startSession(
  of: PaymentServer,
  port: number,
  policyFile?: string,
  apiKey = "",
): Promise<Session> {
  const pidFile = join(await newDir(), "pid");
  const command = [process.execPath, "--import", TO_FAKE, ...of.args];
  const proxied = ["--conditions=@onceward/source", PROXY, "--policy", `${policyFile}`, "--", ...command];
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: policyFile === undefined ? command.slice(1) : proxied,
    env: {
      ...(CHILD_ENVIRONMENT as Record<string, string>),
      ...of.env,
      FAKE_PORT: `${port}`,
      PID_FILE: pidFile,
      ONCEWARD_ADDRESS: `http://127.0.0.1:${server.grpcPort}`,
      ONCEWARD_API_KEY: apiKey,
    },
    stderr: "ignore",
  });
  const host = new Client({ name: "host", version: "1" });
  await host.connect(transport);
  onTestFinished(() => host.close());
  const pids = { "host's child": transport.pid ?? 0, server: Number(await readFile(pidFile, "utf8")) };
  return {
    call: (order) => host.callTool(of.call(order)),
    async kill(which) {
      process.kill(pids[which], "SIGKILL");
      await host.close();
    },
  };
}

describe.each(SERVERS)("$name", (of) => {
  test("without the proxy, each repeated call charges again", async () => {
    const { port, accounts } = await startProvider();
    const session = await startSession(of, port);
    for (const order of [...ORDERS, ...ORDERS]) await session.call(order);
    expect(accounts().map(({ charges }) => charges)).toEqual(ORDERS.map(() => 2));
  });

  test("behind it, repeated calls charge once, half of them after a kill", {
    timeout: 600_000,
  }, async () => {
    const { port, accounts } = await startProvider();
    const { apiKey } = await createTenant(database);
    const policyFile = join(await newDir(), "policy.json");
    const tools = { [of.call("").name]: of.policy };
    await writeFile(policyFile, JSON.stringify({ namespace: "mcp-tools", tools }));
    const queue = random.shuffle(ORDERS);
    const work = async () => {
      let session = await startSession(of, port, policyFile, apiKey);
      for (let order = queue.pop(); order !== undefined; order = queue.pop()) {
        const call = session.call(order).catch(() => {});
        if (queue.length % 2 === 0) {
          await sleep(random.below(MAX_KILL_DELAY_MS));
          await session.kill(queue.length % 4 === 0 ? "server" : "host's child");
          session = await startSession(of, port, policyFile, apiKey);
        }
        await call;
        expect(await session.call(order)).not.toHaveProperty("isError", true);
      }
    };
    await Promise.all(Array.from({ length: LANES }, work));
    for (const { keys, charges } of accounts()) {
      expect(charges).toBe(1);
      expect(new Set(keys).size).toBe(1);
    }
  });
});
