import { createOnceward } from "@onceward/client";
import { connect } from "amqplib";
import { messageOnce } from "../../../clients/typescript/src/rabbitmq.ts";
import type { WorkerSettings } from "./rabbitmq-worker-process.ts";

/** A consumer in a separate process, which kills itself at a given step. Its effect is a message, too. */

const settings: WorkerSettings = JSON.parse(process.argv[2] ?? "");
const onceward = createOnceward({ address: settings.address, apiKey: settings.apiKey });
const connection = await connect(settings.url);
const channel = await connection.createConfirmChannel();

const handle = await messageOnce(
  onceward,
  {
    channel,
    queue: settings.queue,
    namespace: "charges",
    deadLetter: "skip",
    tooOld: "skip",
    // Called after the completion, and before the acknowledgement.
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
  // The signal is asynchronous: nothing more may be done before it arrives.
  for (;;);
}
