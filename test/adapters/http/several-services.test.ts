import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { createOnceward } from "@onceward/client";
import express from "express";
import { expect, onTestFinished, test } from "vitest";
import { idempotency } from "../../../clients/typescript/src/express.ts";
import { CHILD_ENVIRONMENT } from "../../support/processes/child-environment.ts";
import { createTenant } from "../../support/servers/tenants.ts";
import { useServer } from "../../support/servers/use-server.ts";
import { send } from "./http-client.ts";
import { listen } from "./listen.ts";
import type { OrderServiceSettings } from "./order-service.ts";

const { database, server } = useServer();
const ORDER_SERVICE = fileURLToPath(new URL("order-service.ts", import.meta.url));
/** Two starts of a process. */
const TIMEOUT_MS = 60_000;

test("a service that is killed after a call of another one repeats it without a second effect", {
  timeout: TIMEOUT_MS,
}, async () => {
  const tenant = await createTenant(database);
  const address = `http://127.0.0.1:${server.grpcPort}`;
  const onceward = createOnceward({ address, apiKey: tenant.apiKey });
  const charged = Promise.withResolvers<void>();
  let effects = 0;
  const app = express();
  app.use(express.json());
  app.post("/charges", idempotency(onceward, { namespace: "charges", caller: () => "orders" }), (_, res) => {
    effects++;
    charged.resolve();
    res.status(201).json({ id: `ch_${effects}` });
  });
  const bank = await listen(createServer(app));
  onTestFinished(async () => {
    await bank.close();
    await onceward.close();
  });
  const settings = { address, apiKey: tenant.apiKey, bank: `http://127.0.0.1:${bank.port}/charges` };
  const order = { path: "/orders", headers: { "idempotency-key": '"order-1"' } };

  const killed = await startOrderService(settings);
  const lost = send(killed.port, order);
  const ended = expect(lost).rejects.toThrow();
  await charged.promise;
  killed.child.kill("SIGKILL");
  await ended;
  await database.query("update records set lease_expires_at = now() where tenant_id = $1", [tenant.id]);

  const { port } = await startOrderService(settings);
  const answer = await send(port, order);
  expect(answer).toMatchObject({ status: 201, body: Buffer.from('{"id":"ch_1"}') });
  expect(effects).toBe(1);
});

async function startOrderService(
  settings: OrderServiceSettings,
): Promise<{ readonly child: ChildProcess; readonly port: number }> {
  const args = ["--conditions=@onceward/source", ORDER_SERVICE, JSON.stringify(settings)];
  const child = spawn(process.execPath, args, {
    env: CHILD_ENVIRONMENT,
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [printed] = await once(child.stdout, "data");
  return { child, port: Number(printed) };
}
