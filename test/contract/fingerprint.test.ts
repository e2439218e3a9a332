import { expect, test } from "vitest";
import { errorOf } from "../support/calls/errors.ts";
import { fingerprintOf, grant, lookUp, ORDER, success } from "../support/calls/verbs.ts";
import { describeSharedContractOnce, type SharedCaller } from "../support/servers/shared-contract.ts";

const ONE = fingerprintOf("charge 10 EUR");
const OTHER = fingerprintOf("charge 99 EUR");

/** States of a record when a claim has another fingerprint. */
const STATES: Readonly<Record<string, (caller: SharedCaller, fencingToken: bigint) => Promise<unknown>>> = {
  "in progress": async () => {},
  released: ({ client }, fencingToken) => client.release({ ...ORDER, fencingToken }),
  completed: ({ client }, fencingToken) =>
    client.complete({ ...ORDER, fencingToken, result: success("secret") }),
  "completed, with its result gone": async ({ client, timePasses }, fencingToken) => {
    await client.complete({ ...ORDER, fencingToken, result: success("secret") });
    await timePasses(3601);
  },
  "past its lease": ({ timePasses }) => timePasses(31),
};

describeSharedContractOnce("A fingerprint", (contract) => {
  for (const policy of ["RECLAIM", "HOLD"]) {
    test.each(Object.keys(STATES))(
      `that differs is refused where the record is %s, under ${policy}`,
      async (state) => {
        const caller = await contract.newCaller({ on_lease_expiry: policy, result_retention_s: 3600 });
        const { fencingToken } = await grant(caller.client, { fingerprint: ONE });
        await STATES[state]?.(caller, fencingToken);
        const before = await lookUp(caller.client);
        const error = await errorOf(
          caller.client.claim({ ...ORDER, fingerprint: OTHER, acceptAmbiguous: true }),
        );
        expect(error).toMatchObject({
          code: "FailedPrecondition",
          reason: "FINGERPRINT_MISMATCH",
          domain: "onceward",
        });
        expect(error.message).not.toContain("secret");
        expect(await lookUp(caller.client)).toEqual(before);
      },
    );
  }

  test("that is the same gets the claim and the result", async () => {
    const { client } = await contract.newCaller();
    const first = await grant(client, { fingerprint: ONE });
    await client.release({ ...ORDER, fencingToken: first.fencingToken });
    const { fencingToken } = await grant(client, { fingerprint: ONE });
    await client.complete({ ...ORDER, fencingToken, result: success("done") });
    const { outcome } = await client.claim({ ...ORDER, fingerprint: ONE });
    expect(outcome.case).toBe("completed");
  });

  test("still binds the key after a claim without one", async () => {
    const { client } = await contract.newCaller();
    const first = await grant(client, { fingerprint: ONE });
    await client.release({ ...ORDER, fencingToken: first.fencingToken });
    const second = await grant(client);
    expect((await lookUp(client)).fingerprint).toEqual(ONE);
    await client.complete({ ...ORDER, fencingToken: second.fencingToken, result: success("done") });
    expect(await errorOf(client.claim({ ...ORDER, fingerprint: OTHER }))).toMatchObject({
      reason: "FINGERPRINT_MISMATCH",
    });
    expect((await client.claim(ORDER)).outcome.case).toBe("completed");
  });

  test("does not bind a key whose claim without one is in progress", async () => {
    const { client } = await contract.newCaller();
    await grant(client);
    const { outcome } = await client.claim({ ...ORDER, fingerprint: ONE });
    expect(outcome.case).toBe("inProgress");
    expect((await lookUp(client)).fingerprint).toHaveLength(0);
  });

  test("binds a key that was claimed without one when its claim is granted", async () => {
    const { client } = await contract.newCaller();
    const first = await grant(client);
    await client.release({ ...ORDER, fencingToken: first.fencingToken });
    await grant(client, { fingerprint: ONE });
    expect((await lookUp(client)).fingerprint).toEqual(ONE);
    expect(await errorOf(client.claim({ ...ORDER, fingerprint: OTHER }))).toMatchObject({
      reason: "FINGERPRINT_MISMATCH",
    });
  });

  test("is forgotten with its key", async () => {
    const { client, timePasses } = await contract.newCaller();
    await grant(client, { fingerprint: ONE });
    await timePasses(73 * 3600);
    expect(await grant(client, { fingerprint: OTHER })).toMatchObject({ attempt: 1 });
    expect((await lookUp(client)).fingerprint).toEqual(OTHER);
  });
});
