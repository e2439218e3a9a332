import { createOnceward } from "@onceward/client";
import { connect } from "amqplib";
import { messageOnce } from "../../../clients/typescript/src/rabbitmq.ts";
import type { WorkerSettings } from "./rabbitmq-worker-process.ts";

/** A consumer in a process of its own, which kills itself at the moment that it is told. Its effect is a message, too. */

const settings: WorkerSettings = JSON.parse(process.argv[2] ?? "");
const onceward = createOnceward({ address: settings.address, apiKey: settings.apiKey });
const connection = await connect(settings.url);
const channel = await connection.createConfirmChannel();

const handle = await messageOnce(
  onceward,
  channel,
  {
    queue: settings.queue,
    namespace: "charges",
    // Told after the completion, and before the acknowledgement.
    onDelivery: () => dieIf("before acknowledgement"),
  },
  async (_, claim) => {
    channel.sendToQueue(settings.effects, Buffer.from(claim.deriveKey("provider")));
    await channel.waitForConfirms();
    dieIf("before completion");
  },
);
await channel.consume(settings.queue, (message) => void (message && handle(message)));

function dieIf(here: WorkerSettings["dieAt"]): void {
  if (settings.dieAt !== here) return;
  process.kill(process.pid, "SIGKILL");
  // Death comes when it comes; until then, nothing more is done.
  for (;;);
}
