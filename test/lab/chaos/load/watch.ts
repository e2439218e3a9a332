import { createClient } from "@connectrpc/connect";
import { IdempotencyService } from "../../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { nowMs } from "../../history/operation.ts";
import { grpcTransport } from "../grpc-transport.ts";
import { bearing } from "./calls.ts";
import type { ClientPlan } from "./messages.ts";
import { TENANTS } from "./spaces.ts";

/** A check whether a replica serves a client: a claim of a new key, which only Postgres can grant. */
export interface Look {
  readonly client: string;
  readonly replica: string;
  readonly key: string;
  readonly askedAtMs: number;
  /** Undefined: it was not granted. */
  readonly grantedAtMs: number | undefined;
}

/** Checks every replica several times a second. */
export interface Watch {
  /** Stops; resolves to all checks once those in flight have ended. */
  stop(): Promise<readonly Look[]>;
}

/** The watch's own namespace, so that its claims are in no history. */
export const WATCHED = "watch";
/** The longest allowed recovery: a check that takes longer shows nothing. */
const TIMEOUT_MS = 2000;
const [TENANT] = TENANTS;

/** Starts a watch. Checks do not wait for earlier ones. */
export function startWatch({ client, replicas, apiKeys, round, watchIntervalMs }: ClientPlan): Watch {
  const looks: Look[] = [];
  const inFlight = new Set<Promise<void>>();
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
      looks.push({ client, replica: name, key, askedAtMs, grantedAtMs: isGranted ? nowMs() : undefined });
    }
    return setInterval(() => {
      const looking = look().finally(() => inFlight.delete(looking));
      inFlight.add(looking);
    }, watchIntervalMs);
  });
  return {
    async stop() {
      for (const timer of timers) clearInterval(timer);
      await Promise.all(inFlight);
      return looks;
    },
  };
}
