import { randomUUID } from "node:crypto";
import { createClient, type Interceptor } from "@connectrpc/connect";
import { IdempotencyService } from "../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import type { ItemRequest } from "../../support/calls/batches.ts";
import type { IdempotencyClient } from "../../support/calls/clients.ts";
import type { FinalRead } from "../history/final-reads.ts";
import { openJournal } from "../history/journal.ts";
import { seenRecord } from "../history/messages.ts";
import { nameOf, nowMs, type RecordName } from "../history/operation.ts";
import { recordingInterceptor } from "../history/recorder.ts";
import { persist } from "./faults/fault.ts";
import { grpcTransport } from "./grpc-transport.ts";
import { bearing } from "./load/calls.ts";
import type { Rig } from "./rig.ts";

const BATCH = 500;
const TIMEOUT_MS = 20_000;

/** Claims every key once more, through each replica in turn, and records the answers: no key may be stuck. */
export async function probe(rig: Rig, names: readonly RecordName[], journalPath: string): Promise<void> {
  const journal = openJournal(journalPath);
  for (const [index, { tenant, own }] of chunksOf(names).entries()) {
    const replica = rig.replicas[index % rig.replicas.length];
    if (replica === undefined) throw new Error("there are no replicas");
    const recording = recordingInterceptor({ journal, client: "probe", replica: replica.name, tenant });
    const client = connect(rig, tenant, replica.inbound.port, [recording]);
    const items = own.map(({ namespace, key }) => ({
      request: {
        case: "claim",
        value: { namespace, key, claimId: randomUUID() },
      } satisfies ItemRequest,
    }));
    // A failed call is in the journal and is judged there.
    await client.batch({ items }, { timeoutMs: TIMEOUT_MS }).catch(() => {});
  }
  journal.close();
}

/** Reads every key from Postgres: a Lookup asks no cache. @throws Error if one is not answered although faults have healed. */
export async function readAll(
  rig: Rig,
  names: readonly RecordName[],
  signal: AbortSignal,
): Promise<FinalRead[]> {
  const reads: FinalRead[] = [];
  for (const { tenant, own } of chunksOf(names)) {
    const client = connect(rig, tenant, rig.replicas[0]?.inbound.port ?? 0, []);
    // On a busy machine a statement may be late.
    reads.push(...(await persist({ signal }, () => readChunk(client, own))));
  }
  return reads;
}

async function readChunk(client: IdempotencyClient, own: readonly RecordName[]): Promise<FinalRead[]> {
  const items = own.map(({ namespace, key }) => ({
    request: { case: "lookup", value: { namespace, key } } satisfies ItemRequest,
  }));
  const invokedAtMs = nowMs();
  const reply = await client.batch({ items }, { timeoutMs: TIMEOUT_MS });
  const returnedAtMs = nowMs();
  return reply.items.map(({ response }, index) => {
    const name = own[index];
    if (name === undefined || response.case !== "lookup") {
      const why = response.case === "error" ? response.value.message : response.case;
      throw new Error(`the final read of ${name && nameOf(name)} was answered: ${why}`);
    }
    const { record } = response.value;
    return { ...name, seen: record && seenRecord(record), invokedAtMs, returnedAtMs };
  });
}

function connect(rig: Rig, tenant: string, port: number, recording: readonly Interceptor[]) {
  const interceptors = [bearing(rig.apiKeys[tenant] ?? ""), ...recording];
  return createClient(IdempotencyService, grpcTransport(port, interceptors));
}

function chunksOf(names: readonly RecordName[]) {
  const byTenant = Map.groupBy(names, ({ tenant }) => tenant);
  return [...byTenant].flatMap(([tenant, own]) =>
    Array.from({ length: Math.ceil(own.length / BATCH) }, (_, index) => ({
      tenant,
      own: own.slice(index * BATCH, (index + 1) * BATCH),
    })),
  );
}
