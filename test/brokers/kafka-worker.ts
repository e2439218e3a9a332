import { appendFileSync } from "node:fs";
import { createOnceward } from "@onceward/client";
import { Consumer } from "@platformatic/kafka";
import { consumeOnce } from "../../clients/typescript/src/kafka.ts";

/** A consumer in a separate process, which kills itself after its effect, or after the completion before the commit. */

/** The settings of a worker. */
export interface KafkaWorkerSettings {
  readonly broker: string;
  readonly group: string;
  readonly topic: string;
  /** The file that gets a line for each effect. */
  readonly effects: string;
  readonly address: string;
  readonly apiKey: string;
  readonly dieAt: "before completion" | "before commit";
}

const settings: KafkaWorkerSettings = JSON.parse(process.argv[2] ?? "");
const onceward = createOnceward({ address: settings.address, apiKey: settings.apiKey });
const consumer = new Consumer({
  groupId: settings.group,
  clientId: "worker",
  bootstrapBrokers: [settings.broker],
  sessionTimeout: 2000,
  heartbeatInterval: 300,
});

consumeOnce(
  onceward,
  consumer,
  {
    topics: [settings.topic],
    namespace: "charges",
    deadLetter: "skip",
    tooOld: "skip",
    // Called after the completion, and before the commit.
    onDelivery: () => dieIf("before commit"),
  },
  (_, claim) => {
    appendFileSync(settings.effects, `${claim.deriveKey("provider")}\n`);
    dieIf("before completion");
  },
);

function dieIf(here: KafkaWorkerSettings["dieAt"]): void {
  if (settings.dieAt !== here) return;
  process.kill(process.pid, "SIGKILL");
  // The signal is asynchronous: nothing more may be done before it arrives.
  for (;;);
}
