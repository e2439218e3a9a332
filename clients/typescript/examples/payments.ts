/**
 * `npm run example -- payments`: an endpoint that charges, before a provider that charges again on every call. Its clients
 * disconnect from their first request and then send two more at once.
 */

import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createOnceward, newKey } from "@onceward/client";
import { idempotency } from "@onceward/client/express";
import express from "express";
import { findService, prove } from "./setup.ts";

const ORDERS = 20;

const charges: string[] = [];
const provider = {
  async charge(orderId: string, amount: number, idempotencyKey = "") {
    await sleep(50);
    return { id: `ch_${charges.push(orderId)}`, amount, idempotencyKey };
  },
};

const onceward = createOnceward(await findService());
const app = express();
app.use(express.json());
app.post(
  "/charges",
  idempotency(onceward, {
    namespace: "example-payments",
    // In your API: the account that is logged in.
    caller: () => "account-1",
    waitMs: 30_000,
    // After a charge that threw, no one knows: the namespace's policy decides.
    onError: "unknown",
  }),
  async ({ body }, res) => {
    const charge = await provider.charge(body.orderId, body.amount, res.locals.claim?.deriveKey("charge"));
    res.status(201).json(charge);
  },
);
const server = app.listen(0, "127.0.0.1");
await once(server, "listening");
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/charges`;

function pay(orderId: string, amount: number, patienceMs = 40_000): Promise<Response> {
  return fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", "idempotency-key": `"${orderId}"` },
    body: JSON.stringify({ orderId, amount }),
    signal: AbortSignal.timeout(patienceMs),
  });
}

async function order(): Promise<Response[]> {
  const orderId = newKey();
  // The charge continues; only its answer is lost.
  await pay(orderId, 4200, 25).catch(() => {});
  const answers = await Promise.all([pay(orderId, 4200), pay(orderId, 4200)]);
  return [...answers, await pay(orderId, 9900)];
}

const answers = (await Promise.all(Array.from({ length: ORDERS }, order))).flat();
const paid = answers.filter(({ status }) => status === 201);
const receipts = new Set(await Promise.all(paid.map((answer) => answer.text())));

prove("orders, requested three times each, were charged", charges.length, ORDERS);
prove("requests were answered with a receipt", paid.length, 2 * ORDERS);
prove("different receipts were sent", receipts.size, ORDERS);
prove("requests to charge another amount were refused", answers.length - paid.length, ORDERS);

server.close();
await onceward.close();
