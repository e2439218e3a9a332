import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { createOnceward } from "@onceward/client";
import { messageOnce } from "../../../clients/typescript/src/nats.ts";
import type { NatsWorkerSettings } from "./nats-worker-process.ts";

/** A consumer in a separate process, which kills itself at a given step. Its effect is a message, too. */

const settings: NatsWorkerSettings = JSON.parse(process.argv[2] ?? "");
const onceward = createOnceward({ address: settings.address, apiKey: settings.apiKey });
const connection = await connect({ servers: settings.server });

const handle = messageOnce(
  onceward,
  {
    namespace: "charges",
    deadLetter: "skip",
    tooOld: "skip",
    // Called after the completion, and before the acknowledgement.
    onDelivery: () => dieIf("before acknowledgement"),
  },
  async (_, claim) => {
    connection.publish(settings.effects, claim.deriveKey("provider"));
    await connection.flush();
    dieIf("before completion");
  },
);
const consumer = await jetstream(connection).consumers.get(settings.stream, settings.consumer);
await consumer.consume({ callback: (message) => void handle(message) });

function dieIf(here: NatsWorkerSettings["dieAt"]): void {
  if (settings.dieAt !== here) return;
  process.kill(process.pid, "SIGKILL");
  // The signal is asynchronous: nothing more may be done before it arrives.
  for (;;);
}
