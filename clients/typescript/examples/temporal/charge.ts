/**
 * `npm run example -- temporal/charge`: a worker of Temporal that charges orders. The report of each first attempt is lost after the
 * charge, so Temporal starts another attempt, which gets the stored result.
 *
 * Needs a server (`temporal server start-dev`), or the one at `TEMPORAL_ADDRESS`, and packages that this repository does not
 * install: `npm install --no-save @temporalio/worker @temporalio/client @temporalio/workflow`.
 */

import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { createOnceward, currentClaim } from "@onceward/client";
import { temporalInterceptor } from "@onceward/client/temporal";
import { Client, Connection } from "@temporalio/client";
import { type ActivityInterceptorsFactory, NativeConnection, Worker } from "@temporalio/worker";
import { findService, prove } from "../setup.ts";
import type { chargeOrder } from "./workflows.ts";

const ORDERS = 10;
const taskQueue = `charges-${randomUUID()}`;
const temporalAddress = process.env.TEMPORAL_ADDRESS ?? "127.0.0.1:7233";

const { address, apiKey } = await findService();
const onceward = createOnceward({ address, apiKey });

const charges: string[] = [];
let attempts = 0;

async function charge(orderId: string): Promise<string> {
  // The provider honours idempotency keys.
  const providerKey = currentClaim().deriveKey("provider");
  return `ch_${charges.push(orderId)} ${providerKey}`;
}

/** Loses the report of each first attempt, as a worker does that dies after the effect. */
const loseFirstReports: ActivityInterceptorsFactory = ({ info }) => ({
  inbound: {
    async execute(input, next) {
      attempts++;
      const result = await next(input);
      if (info.attempt === 1) throw new Error("the report was lost");
      return result;
    },
  },
});

const connection = await NativeConnection.connect({ address: temporalAddress });
const worker = await Worker.create({
  connection,
  taskQueue,
  workflowsPath: fileURLToPath(new URL("workflows.ts", import.meta.url)),
  activities: { charge },
  interceptors: {
    activity: [loseFirstReports, temporalInterceptor(onceward, { namespace: "example-temporal" })],
  },
});

const ids = await worker.runUntil(async () => {
  const client = new Client({ connection: await Connection.connect({ address: temporalAddress }) });
  const orders = Array.from({ length: ORDERS }, () => randomUUID());
  return await Promise.all(
    orders.map((order) =>
      client.workflow.execute<typeof chargeOrder>("chargeOrder", {
        args: [order],
        taskQueue,
        workflowId: `order-${order}`,
      }),
    ),
  );
});
await connection.close();
await onceward.close();

prove(`attempts, two for each of ${ORDERS} orders`, attempts, 2 * ORDERS);
prove("charges", charges.length, ORDERS);
prove("different charges in the answers", new Set(ids).size, ORDERS);
// The connection of the client has no end of its own.
process.exit();
