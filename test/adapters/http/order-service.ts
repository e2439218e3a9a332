import type { AddressInfo } from "node:net";
import { createOnceward } from "@onceward/client";
import express from "express";
import { idempotency } from "../../../clients/typescript/src/express.ts";
import { withIdempotencyKeys } from "../../../clients/typescript/src/http.ts";

/** The settings of an order service. */
export interface OrderServiceSettings {
  readonly address: string;
  readonly apiKey: string;
  /** The URL at which the bank charges. */
  readonly bank: string;
}

/** A service in a separate process, whose guarded handler has another service charge. Prints its port. */
const { address, apiKey, bank }: OrderServiceSettings = JSON.parse(process.argv[2] ?? "");
const onceward = createOnceward({ address, apiKey });
const callBank = withIdempotencyKeys();
const app = express();
app.use(express.json());
app.post("/orders", idempotency(onceward, { namespace: "orders", caller: () => "all" }), async (req, res) => {
  const headers = { "content-type": "application/json" };
  const charge = await callBank(bank, { method: "POST", headers, body: JSON.stringify(req.body) });
  res.status(charge.status).end(await charge.text());
});
const server = app.listen(0, "127.0.0.1", () =>
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`),
);
