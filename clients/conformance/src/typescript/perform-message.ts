import { createConclude } from "../../../typescript/src/consumers/dead-letter.ts";
import { createHandler } from "../../../typescript/src/consumers/handle.ts";
import type { ConsumerOptions } from "../../../typescript/src/consumers/options.ts";
import { createOnceward } from "../../../typescript/src/index.ts";
import { describeClaim, perform, type Step } from "./perform-runs.ts";
import { reportError } from "./report.ts";
import { writeValue } from "./values.ts";

/** Deliveries of messages to one consumer, one after the other. */
export interface MessageCase {
  readonly do: "message";
  readonly address: string;
  readonly options?: Pick<
    ConsumerOptions<never>,
    "mode" | "maxAttempts" | "redeliverAfterMs" | "maxRedeliverAfterMs" | "onError" | "marksBegin"
  > & { readonly fingerprint?: string };
  readonly deliveries: readonly Message[];
}

interface Message {
  readonly key?: string;
  readonly function: readonly Step[];
}

/** What the broker is told, by the verdict of {@link createConclude}. */
const ACTIONS = { acknowledge: "acknowledge", discard: "dead-letter", reject: "dead-letter", retry: "retry" };

/** Performs the deliveries of a case. Returns the outcome of each, and how often the function was called. */
export async function performMessage({ address, options, deliveries }: MessageCase): Promise<object> {
  const onceward = createOnceward({ address, apiKey: "conformance", owner: "conformance" });
  const fingerprint = options?.fingerprint === undefined ? undefined : () => options.fingerprint;
  const given = {
    namespace: "charges",
    ...options,
    fingerprint,
    onDelivery: () => {},
    deadLetter: async () => {},
  };
  let functions = 0;
  const handle = createHandler<Message, unknown>(
    onceward,
    given,
    ({ key }) => key,
    async (message, claim) => {
      functions += 1;
      return await perform(message.function, claim, describeClaim(claim));
    },
  );
  const conclude = createConclude<Message>(given, []);
  const outcomes: object[] = [];
  for (const message of deliveries) {
    const delivery = await handle(message);
    const verdict = await conclude(message, delivery);
    outcomes.push({
      kind: delivery.kind,
      action: ACTIONS[verdict.kind],
      ...("delayMs" in delivery && { delayMs: delivery.delayMs }),
      ...("value" in delivery && delivery.value !== undefined && { value: writeValue(delivery.value) }),
      ...("error" in delivery && delivery.error !== undefined && { error: reportError(delivery.error) }),
    });
  }
  await onceward.close();
  return { deliveries: outcomes, functions };
}
