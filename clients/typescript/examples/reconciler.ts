/**
 * `npm run example -- reconciler`: policy HOLD, for a provider to which every call is a new order. Workers die after
 * they claimed, half of them after they charged. Those orders do not run again automatically: their records are
 * ambiguous, and this program resolves them by asking the provider.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { AmbiguousError, createOnceward, jsonCodec } from "@onceward/client";
import { createTenantAdmin, Policy_OnLeaseExpiry } from "@onceward/client/admin";
import { Record_State, type RecordMessage, Result_Kind } from "@onceward/client/proto";
import { findService, prove } from "./setup.ts";

const ORDERS = 12;
const NAMESPACE = "example-reconciler";
/** The keys of this run of the example. */
const keyPrefix = `${crypto.randomUUID()}/`;
const orders = Array.from({ length: ORDERS }, (_, index) => `${keyPrefix}${index}`);

const charges: string[] = [];
const provider = {
  charge: (orderId: string) => ({ id: `ch_${charges.push(orderId)}` }),
  /** Returns an order's charge, which every provider can look up. */
  find(orderId: string) {
    const index = charges.indexOf(orderId);
    return index < 0 ? undefined : { id: `ch_${index + 1}` };
  },
};

const { address, apiKey, adminKey } = await findService();
const onceward = createOnceward({ address, apiKey });
const admin = createTenantAdmin({ address, apiKey: adminKey });

async function holdExpiredLeases(): Promise<void> {
  const { namespaces } = await admin.listNamespaces({ pageSize: 1000 });
  if (namespaces.some(({ name }) => name === NAMESPACE)) return;
  const policy = { onLeaseExpiry: Policy_OnLeaseExpiry.HOLD };
  await admin.updateNamespace({ namespace: { name: NAMESPACE, policy }, allowMissing: true });
  console.log("The policy is new; it takes effect on every replica within 10 s.");
  await sleep(10_000);
}

/**
 * Claims by the plain RPC, so that nothing prolongs the lease and nothing completes the claim, as if the worker had
 * died.
 */
async function workAndDie(key: string, index: number): Promise<void> {
  await onceward.api.claim({ namespace: NAMESPACE, key, owner: "worker", lease: durationFromMs(1000) });
  if (index % 2 === 0) provider.charge(key);
}

function redeliver(key: string): Promise<{ id: string }> {
  return onceward.run({ namespace: NAMESPACE, key }, () => provider.charge(key));
}

async function* ambiguousRecords(): AsyncGenerator<RecordMessage> {
  let pageToken = "";
  do {
    const filter = { namespace: NAMESPACE, keyPrefix, state: Record_State.AMBIGUOUS };
    const page = await admin.listRecords({ ...filter, pageToken });
    yield* page.records;
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
}

async function reconcile({ namespace, key, fencingToken }: RecordMessage): Promise<void> {
  const charge = provider.find(key);
  // With the token, the resolution is refused if the key was claimed again in the meantime.
  const record = { namespace, key, fencingToken };
  if (charge === undefined) {
    await admin.resolveRecord({
      ...record,
      resolution: { case: "release", value: {} },
      reason: "not charged",
    });
  } else {
    // In the form that `run` stores, so that every repeat gets it.
    const result = { kind: Result_Kind.SUCCESS, ...jsonCodec.encode(charge) };
    await admin.resolveRecord({
      ...record,
      resolution: { case: "complete", value: { result } },
      reason: "charged",
    });
  }
}

await holdExpiredLeases();
await Promise.all(orders.map(workAndDie));
await sleep(1500);

const refused = await Promise.allSettled(orders.map(redeliver));
const ambiguous = refused.filter((one) => one.status === "rejected" && one.reason instanceof AmbiguousError);
prove("orders whose worker died are ambiguous, and did not run again", ambiguous.length, ORDERS);

let resolved = 0;
for await (const record of ambiguousRecords()) {
  await reconcile(record);
  resolved++;
}
prove("ambiguous records are resolved", resolved, ORDERS);

const receipts = await Promise.all(orders.map(redeliver));
prove("later deliveries got their receipt", new Set(receipts.map(({ id }) => id)).size, ORDERS);
prove("charges were made", charges.length, ORDERS);
prove("different orders were charged", new Set(charges).size, ORDERS);

await onceward.close();
admin.close();
