import { setTimeout as pause } from "node:timers/promises";
import { ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { IdempotencyService } from "../../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import type { IdempotencyClient } from "../../../support/calls/clients.ts";
import type { Random } from "../../../support/random.ts";
import type { Journal } from "../../history/journal.ts";
import { describeError } from "../../history/messages.ts";
import { nameOf, type RecordName } from "../../history/operation.ts";
import { recordingInterceptor } from "../../history/recorder.ts";
import { grpcTransport } from "../grpc-transport.ts";
import type { ClientPlan, ReplicaAddress } from "./messages.ts";

/** Clients of every replica for every tenant; calls are recorded and have a deadline. */
export interface Calls {
  /**
   * Makes a call through any replica; returns undefined if it failed. After a call of unknown outcome it
   * pauses, so that an outage does not fill a key's history with operations that can't be ordered.
   */
  tell<Reply>(
    records: readonly RecordName[],
    call: (client: IdempotencyClient, options: { timeoutMs: number }) => Promise<Reply>,
    timeoutMs?: number,
  ): Promise<Reply | undefined>;
  /** Returns whether so many calls on the key were lost that more would make it hard to judge. */
  isWornOut(record: RecordName): boolean;
}

const TIMEOUT_MS = 2500;
const REST_MS = 500;
const MAX_LOSSES = 2;

/** @see Calls */
export function createCalls(plan: ClientPlan, journal: Journal, random: Random): Calls {
  const losses = new Map<string, number>();
  const clients = new Map<string, IdempotencyClient[]>();
  for (const [tenant, apiKey] of Object.entries(plan.apiKeys)) {
    clients.set(
      tenant,
      plan.replicas.map((replica) => connect(plan, replica, tenant, apiKey, journal)),
    );
  }
  return {
    isWornOut: (record) => (losses.get(nameOf(record)) ?? 0) >= MAX_LOSSES,
    async tell(records, call, timeoutMs = TIMEOUT_MS) {
      const [first] = records;
      const own = clients.get(first?.tenant ?? "");
      const client = own?.[random.below(own.length)];
      if (client === undefined) throw new Error(`there is no client for ${first?.tenant}`);
      try {
        return await call(client, { timeoutMs });
      } catch (error) {
        if (!(error instanceof ConnectError)) throw error;
        if (describeError(error).kind !== "unknown") return undefined;
        for (const record of records) losses.set(nameOf(record), (losses.get(nameOf(record)) ?? 0) + 1);
        await pause(REST_MS * (0.5 + random.next()));
        return undefined;
      }
    },
  };
}

function connect(
  { client }: ClientPlan,
  { name, grpcPort }: ReplicaAddress,
  tenant: string,
  apiKey: string,
  journal: Journal,
): IdempotencyClient {
  const interceptors = [
    bearing(apiKey),
    // Last, so that it records what is on the wire.
    recordingInterceptor({ journal, client, replica: name, tenant }),
  ];
  return createClient(IdempotencyService, grpcTransport(grpcPort, interceptors));
}

/** Returns an interceptor that sends an API key. */
export function bearing(apiKey: string): Interceptor {
  return (next) => (request) => {
    request.header.set("authorization", `Bearer ${apiKey}`);
    return next(request);
  };
}
