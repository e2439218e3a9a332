import { setTimeout as pause } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { ConnectError, createClient } from "@connectrpc/connect";
import { IdempotencyService } from "../../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { ResultSchema } from "../../../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import type { IdempotencyClient } from "../../../helpers/calls/clients.ts";
import { success } from "../../../helpers/calls/verbs.ts";
import { nameOfResult } from "../../history/messages.ts";
import { nowMs } from "../../history/operation.ts";
import { grpcTransport } from "../grpc-transport.ts";
import { bearing } from "../load/calls.ts";
import { TENANTS } from "../load/spaces.ts";
import type { Rig } from "../rig.ts";
import type { Acknowledgement } from "./losses.ts";

/** Callers that claim their own keys and complete them under any fault. */
export interface Callers extends AsyncDisposable {
  /** The acknowledgements so far. */
  readonly acknowledgements: readonly Acknowledgement[];
  /** Waits for every caller to end its current key. May be called again. */
  stop(): Promise<void>;
}

const CALLERS = 64;
const TIMEOUT_MS = 5000;
const REST_MS = 20;
const [TENANT] = TENANTS;
/** The namespace of their keys. */
export const NAMESPACE = "charges";

/** Returns a client of one of the replicas, for the first tenant. */
export function connectTo(rig: Rig, number: number): IdempotencyClient {
  const replica = rig.replicas[number % rig.replicas.length];
  if (replica === undefined) throw new Error("there are no replicas");
  const transport = grpcTransport(replica.inbound.port, [bearing(rig.apiKeys[TENANT] ?? "")]);
  return createClient(IdempotencyService, transport);
}

/** Starts callers; `round` is part of their keys. */
export function startCallers(rig: Rig, round: string): Callers {
  const acknowledgements: Acknowledgement[] = [];
  let isStopping = false;
  let keys = 0;

  async function callOnce(client: IdempotencyClient): Promise<void> {
    const record = { tenant: TENANT, namespace: NAMESPACE, key: `x.${round}-${++keys}` };
    const { namespace, key } = record;
    const { outcome } = await client.claim({ namespace, key }, { timeoutMs: TIMEOUT_MS });
    if (outcome.case !== "claimed") return;
    const { fencingToken } = outcome.value;
    const token = Number(fencingToken);
    acknowledgements.push({ kind: "claim", record, token, atMs: nowMs() });
    const result = create(ResultSchema, success(`${key} by ${token}`));
    await client.complete({ namespace, key, fencingToken, result }, { timeoutMs: TIMEOUT_MS });
    const { hash } = nameOfResult(result);
    acknowledgements.push({ kind: "complete", record, token, hash, atMs: nowMs() });
  }

  async function caller(client: IdempotencyClient): Promise<void> {
    while (!isStopping) {
      const isOver = await callOnce(client).then(() => true, unlessRefused);
      if (!isOver) await pause(REST_MS);
    }
  }

  const clients = rig.replicas.map((_, number) => connectTo(rig, number));
  const running = Array.from({ length: CALLERS }, (_, number) => {
    const client = clients[number % clients.length];
    return client === undefined ? undefined : caller(client);
  });
  const stop = async () => {
    isStopping = true;
    await Promise.all(running);
  };
  return { acknowledgements, stop, [Symbol.asyncDispose]: stop };
}

/** Ignores a failed call: it was not acknowledged. @throws anything else. */
export function unlessRefused(error: unknown): undefined {
  if (!(error instanceof ConnectError)) throw error;
}
