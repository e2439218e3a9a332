import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import {
  type BatchRequestItemSchema,
  type BatchResponseItem,
  IdempotencyService,
} from "../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { Result_Kind } from "../../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import { fingerprintOf, type Meaning, type Operation } from "./plan.ts";

type Item = MessageInitShape<typeof BatchRequestItemSchema>;

/** Operations per call, and calls at once: a development server answers other callers meanwhile. */
const BATCH_ITEMS = 100;
const CALL_TIMEOUT_MS = 20_000;
/** The lease of a worker that dies. Short, so that its record is ambiguous soon. */
const DYING_LEASE = { seconds: 2n, nanos: 0 };

/** The only answer to a claim that fits what it plants. */
const EXPECTED: Readonly<Record<Meaning, BatchAnswer>> = {
  first: "claimed",
  repeat: "completed",
  late: "claimed",
  minted: "claimed",
  "look-alike": "claimed",
};

type BatchAnswer = "claimed" | "completed";

/** Performs operations as callers do: claims, and completes what is granted. */
export interface Caller {
  /** @throws Error if a claim gets another answer than the planned one, or a call fails. */
  perform(operations: readonly Operation[]): Promise<void>;
}

/** Returns the caller of a tenant, by native gRPC. */
export function createCaller(address: string, apiKey: string, signal: AbortSignal): Caller {
  const authorize: Interceptor = (next) => (request) => {
    request.header.set("authorization", `Bearer ${apiKey}`);
    return next(request);
  };
  const client = createClient(
    IdempotencyService,
    createGrpcTransport({ baseUrl: address, interceptors: [authorize] }),
  );
  return {
    async perform(operations) {
      for (let from = 0; from < operations.length; from += BATCH_ITEMS) {
        await performBatch(client, operations.slice(from, from + BATCH_ITEMS), signal);
      }
    },
  };
}

async function performBatch(
  client: Client<typeof IdempotencyService>,
  operations: readonly Operation[],
  signal: AbortSignal,
): Promise<void> {
  const send = async (items: readonly Item[]) =>
    items.length === 0
      ? []
      : (await client.batch({ items: [...items] }, { signal, timeoutMs: CALL_TIMEOUT_MS })).items;
  const replies = await send(operations.map(claimOf));
  const next = operations.flatMap((operation, index) => {
    const claimed = outcomeOf(operation, replies[index]);
    return claimed === undefined ? [] : [afterGrant(operation, claimed.fencingToken)];
  });
  for (const { response } of await send(next)) {
    if (response.case === "error") throw new Error(`the service refused: ${response.value.message}`);
  }
}

function claimOf({ namespace, key, request, owner, dies }: Operation): Item {
  const value = {
    namespace,
    key,
    owner,
    fingerprint: fingerprintOf(request),
    ...(dies && { lease: DYING_LEASE }),
  };
  return { request: { case: "claim", value } };
}

/** Returns the grant; undefined for the answer to a repeat. */
function outcomeOf({ namespace, key, meaning }: Operation, reply: BatchResponseItem | undefined) {
  if (reply?.response.case !== "claim") {
    const reason = reply?.response.case === "error" ? reply.response.value.message : "no answer";
    throw new Error(`the claim of ${namespace} "${key}" failed: ${reason}`);
  }
  const { outcome } = reply.response.value;
  if (outcome.case !== EXPECTED[meaning]) {
    throw new Error(`the claim of ${namespace} "${key}" (${meaning}) was answered ${outcome.case}`);
  }
  return outcome.case === "claimed" ? outcome.value : undefined;
}

function afterGrant({ namespace, key, dies }: Operation, fencingToken: bigint): Item {
  const of = { namespace, key, fencingToken };
  if (dies) {
    const state = new TextEncoder().encode(JSON.stringify({ step: "transfer submitted", key }));
    return {
      request: {
        case: "extendLease",
        value: { ...of, lease: DYING_LEASE, checkpoint: { name: "submitted", state } },
      },
    };
  }
  const payload = new TextEncoder().encode(JSON.stringify({ status: "done", key }));
  const result = { kind: Result_Kind.SUCCESS, contentType: "application/json", payload };
  return { request: { case: "complete", value: { ...of, result } } };
}
