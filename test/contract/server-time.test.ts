import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import type { ClaimResponse } from "../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { complete, grant, ORDER } from "../support/calls/verbs.ts";
import { describeContractOnce } from "../support/servers/contract.ts";
import { describeSharedContractOnce, type SharedCaller } from "../support/servers/shared-contract.ts";

/** Times in replies are rounded to a microsecond or a millisecond. */
const ROUNDING_MS = 2;
/**
 * A server's estimate may be ahead of the database's clock by the time of reading it, on a busy machine too.
 */
const RECKONING_MS = 1000;

type Timed = { readonly serverTime?: Timestamp | undefined };

/** Makes a call, and checks that its reply carries a time of the service's clock between its start and its end. */
async function checked<Reply extends Timed>(
  { nowMs }: SharedCaller,
  call: () => Promise<Reply>,
): Promise<Reply> {
  const before = nowMs();
  const reply = await call();
  const after = nowMs();
  if (reply.serverTime === undefined) throw new Error("the reply says no time");
  const time = timestampMs(reply.serverTime);
  expect(time).toBeGreaterThanOrEqual(before - ROUNDING_MS);
  expect(time).toBeLessThanOrEqual(after + RECKONING_MS);
  return reply;
}

function outcomeOf(reply: ClaimResponse): string | undefined {
  return reply.outcome.case;
}

describeSharedContractOnce("The server's time", (contract) => {
  test("is in the reply to a claim that is granted, in progress, recovered or completed", async () => {
    const caller = await contract.newCaller();
    const { client } = caller;
    const id = { ...ORDER, claimId: "call-1" };
    const granted = await checked(caller, () => client.claim(id));
    expect(outcomeOf(granted)).toBe("claimed");
    expect(outcomeOf(await checked(caller, () => client.claim(id)))).toBe("claimed");
    expect(outcomeOf(await checked(caller, () => client.claim(ORDER)))).toBe("inProgress");
    if (granted.outcome.case !== "claimed") throw new Error("the claim was not granted");
    const { fencingToken } = granted.outcome.value;
    await client.complete({ ...ORDER, fencingToken, result: { kind: 1, payload: new Uint8Array(1) } });
    expect(outcomeOf(await checked(caller, () => client.claim(ORDER)))).toBe("completed");
  });

  test("is in the reply to a claim of an ambiguous key, and to one that takes over", async () => {
    const caller = await contract.newCaller({ on_lease_expiry: "HOLD" });
    const { client } = caller;
    await grant(client);
    await caller.timePasses(31);
    expect(outcomeOf(await checked(caller, () => client.claim(ORDER)))).toBe("ambiguous");
    const takenOver = await checked(caller, () => client.claim({ ...ORDER, acceptAmbiguous: true }));
    expect(outcomeOf(takenOver)).toBe("claimed");
  });

  test("is before the end of the lease by the lease's remaining time", async () => {
    const { client } = await contract.newCaller();
    const { outcome, serverTime } = await client.claim(ORDER);
    if (outcome.case !== "claimed" || serverTime === undefined) throw new Error("the claim was not granted");
    const { leaseExpiresAt, leaseRemaining } = outcome.value;
    if (leaseExpiresAt === undefined || leaseRemaining === undefined) throw new Error("there is no lease");
    const remainingMs = Number(leaseRemaining.seconds) * 1000 + leaseRemaining.nanos / 1e6;
    expect(Math.abs(timestampMs(leaseExpiresAt) - timestampMs(serverTime) - remainingMs)).toBeLessThanOrEqual(
      ROUNDING_MS,
    );
  });

  test("is in the reply to a lookup, whether there is a record or not", async () => {
    const caller = await contract.newCaller();
    const { client } = caller;
    expect((await checked(caller, () => client.lookup(ORDER))).record).toBeUndefined();
    await complete(client);
    expect((await checked(caller, () => client.lookup(ORDER))).record).toBeDefined();
  });

  test("is in each claim and lookup of a batch", async () => {
    const caller = await contract.newCaller();
    const items = [
      { request: { case: "claim" as const, value: ORDER } },
      { request: { case: "lookup" as const, value: ORDER } },
    ];
    const before = caller.nowMs();
    const { items: replies } = await caller.client.batch({ items });
    for (const { response } of replies) {
      if (response.case !== "claim" && response.case !== "lookup")
        throw new Error(`answered ${response.case}`);
      const { serverTime } = response.value;
      expect(serverTime && timestampMs(serverTime)).toBeGreaterThanOrEqual(before - ROUNDING_MS);
    }
  });
});

describeContractOnce(
  "The server's time, from a copy in memory",
  (contract) => {
    test("is the server's estimate of the database's time, at each repeat", async () => {
      const caller = await contract.newCaller();
      await complete(caller.client);
      for (let repeat = 0; repeat < 3; repeat++) {
        expect(outcomeOf(await checked(caller, () => caller.client.claim(ORDER)))).toBe("completed");
      }
    });
  },
  { ONCEWARD_CACHE_MIB: "1" },
);
