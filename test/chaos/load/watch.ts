import { createClient } from "@connectrpc/connect";
import { IdempotencyService } from "../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { nowMs } from "../../history/operation.ts";
import { grpcTransport } from "../grpc-transport.ts";
import { bearing } from "./calls.ts";
import type { ClientPlan } from "./messages.ts";
import { TENANTS } from "./spaces.ts";

/** A look at whether one client is served by one replica: a claim of a new key, which nobody but Postgres can grant. */
export interface Look {
  readonly client: string;
  readonly replica: string;
  readonly askedAtMs: number;
  /** Undefined: it was not granted. */
  readonly grantedAtMs: number | undefined;
}

/** Looks at every replica all the time. */
export interface Watch {
  /** Resolves with all looks, once those that are under way have ended. */
  stop(): Promise<readonly Look[]>;
}

/** Of the watch's own, so that no history is longer for it. */
export const WATCHED = "watch";
/** How much later than it happened a recovery may be seen. */
const INTERVAL_MS = 200;
/** A look that takes longer than a recovery may tells nothing any more. */
const TIMEOUT_MS = 2000;
const [TENANT] = TENANTS;

/** Starts it. What a look does not wait for is the one before it: each comes at its time. */
export function startWatch({ client, replicas, apiKeys, round }: ClientPlan): Watch {
  const looks: Look[] = [];
  const underWay = new Set<Promise<void>>();
  const timers = replicas.map(({ name, grpcPort }) => {
    const transport = grpcTransport(grpcPort, [bearing(apiKeys[TENANT] ?? "")]);
    const api = createClient(IdempotencyService, transport);
    let number = 0;
    async function look(): Promise<void> {
      const askedAtMs = nowMs();
      const key = `${round}-${client}-${name}-${++number}`;
      const isGranted = await api.claim({ namespace: WATCHED, key }, { timeoutMs: TIMEOUT_MS }).then(
        ({ outcome }) => outcome.case === "claimed",
        () => false,
      );
      looks.push({ client, replica: name, askedAtMs, grantedAtMs: isGranted ? nowMs() : undefined });
    }
    return setInterval(() => {
      const looking = look().finally(() => underWay.delete(looking));
      underWay.add(looking);
    }, INTERVAL_MS);
  });
  return {
    async stop() {
      for (const timer of timers) clearInterval(timer);
      await Promise.all(underWay);
      return looks;
    },
  };
}
