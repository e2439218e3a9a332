import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Addresses } from "../../../server/src/server.ts";
import { connectClient, type IdempotencyClient } from "../calls/clients.ts";
import { endLeases } from "../calls/records.ts";
import { fingerprintOf, seconds, success } from "../calls/verbs.ts";
import type { TestDatabase } from "../database/database.ts";
import { createTenant, setNamespacePolicy } from "../servers/tenants.ts";

/** Callers of every kind, until `stop`. */
export interface MixedLoad {
  /** Resolves after the current round of each caller; rejects with the first unexpected error. */
  stop(): Promise<void>;
}

/** Pause between two rounds: the load must leave time to Prometheus. */
const PAUSE_MS = 50;
const WAIT_S = 0.2;

/**
 * Starts claims, repeats, completions, batches, waiting claims, errors and refusals by a quota on all
 * replicas, and leaves an ambiguous record.
 */
export async function startMixedLoad(
  database: TestDatabase,
  replicas: readonly Addresses[],
): Promise<MixedLoad> {
  const tenant = await createTenant(database);
  const limited = await createTenant(database, { quota_operations_per_second: 1, quota_burst: 1 });
  await setNamespacePolicy(database, tenant, "payouts", { on_lease_expiry: "HOLD" });
  const clients = replicas.map((replica) => connectClient(replica, tenant.apiKey));
  const limitedClients = replicas.map((replica) => connectClient(replica, limited.apiKey));
  const [first, ...others] = clients as [IdempotencyClient, ...IdempotencyClient[]];
  await first.claim({ namespace: "payouts", key: "payout-1" });
  await endLeases(database, tenant, "payout-1");

  /** One caller's key: a first claim, its repeats on every replica, and what is refused. */
  async function round(): Promise<void> {
    const id = { namespace: "charges", key: randomUUID(), fingerprint: fingerprintOf("order") };
    const claim = { ...id, claimId: randomUUID() };
    const { outcome } = await first.claim(claim);
    if (outcome.case !== "claimed") throw new Error(`a fresh key was answered ${outcome.case}`);
    const { fencingToken } = outcome.value;
    const waiting = others.map((client) => client.claim({ ...id, wait: seconds(WAIT_S) }));
    await first.extendLease({ ...id, fencingToken });
    await Promise.all(waiting);
    await first.complete({ ...id, fencingToken, result: success("paid") });
    const asked = { case: "claim", value: id } as const;
    await Promise.all(
      clients.flatMap((client) => [
        client.claim(id),
        client.lookup(id),
        client.batch({ items: [{ request: asked }, { request: { case: "lookup", value: id } }] }),
        client.claim({ namespace: "payouts", key: "payout-1" }),
        refused(client.claim({ ...id, fingerprint: fingerprintOf("another") })),
        refused(client.release({ ...id, fencingToken })),
      ]),
    );
    await Promise.all(limitedClients.map((client) => client.claim(id).catch(() => {})));
  }

  let stopping = false;
  const running = (async () => {
    while (!stopping) {
      await round();
      await delay(PAUSE_MS);
    }
  })();
  // `stop` rethrows it.
  running.catch(() => {});
  return {
    stop() {
      stopping = true;
      return running;
    },
  };
}

/** @throws Error if the call is not refused. */
async function refused(call: Promise<unknown>): Promise<void> {
  const isRefused = await call.then(
    () => false,
    () => true,
  );
  if (!isRefused) throw new Error("a call was not refused");
}
