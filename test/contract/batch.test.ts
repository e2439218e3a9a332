import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { ErrorReason } from "../../clients/typescript/src/gen/onceward/v1/errors_pb.ts";
import { type ItemRequest, itemErrorOf, runBatch } from "../support/calls/batches.ts";
import { fingerprintOf, grant, ORDER, seconds, success } from "../support/calls/verbs.ts";
import { describeContract } from "../support/servers/contract.ts";
import { describeSharedContract } from "../support/servers/shared-contract.ts";

describeSharedContract("Batch", (contract) => {
  test("answers one item per request, in order", async () => {
    const { client } = await contract.newCaller();
    const keys = Array.from({ length: 1000 }, (_, index) => `order-${index}`);
    await grant(client, { key: "order-500", owner: "before" });
    const responses = await runBatch(
      client,
      keys.map((key, index) =>
        index % 2 === 0
          ? { case: "claim", value: { namespace: "charges", key, owner: key } }
          : { case: "lookup", value: { namespace: "charges", key } },
      ),
    );
    expect(responses.map((response) => response.case)).toEqual(
      keys.map((_, index) => (index % 2 === 0 ? "claim" : "lookup")),
    );
    expect(responses[500]).toMatchObject({
      value: { outcome: { case: "inProgress", value: { owner: "before" } } },
    });
    expect(responses[998]).toMatchObject({ value: { outcome: { case: "claimed" } } });
  });

  test("fails only the item that is refused, with the whole error that its call would have", async () => {
    const { client } = await contract.newCaller();
    await grant(client, { fingerprint: fingerprintOf("one") });
    const responses = await runBatch(client, [
      { case: "claim", value: { ...ORDER, fingerprint: fingerprintOf("other") } },
      { case: "claim", value: { ...ORDER, key: "order-3", lease: seconds(3600) } },
      { case: "release", value: { ...ORDER, key: "never", fencingToken: 1n } },
      { case: "claim", value: { ...ORDER, key: "order-2" } },
    ]);
    const [mismatch, invalid, missing, granted] = responses;
    expect(itemErrorOf(mismatch)).toMatchObject({
      code: Code.FailedPrecondition,
      reason: ErrorReason.FINGERPRINT_MISMATCH,
    });
    expect(itemErrorOf(invalid)).toMatchObject({
      code: Code.InvalidArgument,
      reason: ErrorReason.INVALID_REQUEST,
      fieldViolations: [{ field: "lease" }],
    });
    expect(itemErrorOf(missing)).toMatchObject({
      code: Code.NotFound,
      reason: ErrorReason.RECORD_NOT_FOUND,
    });
    expect(granted).toMatchObject({ value: { outcome: { case: "claimed" } } });
  });
});

describeContract("Batch on a server", (contract) => {
  test("answers RESPONSE_TOO_LARGE for responses beyond 4 MiB, and nothing is lost", async () => {
    const { client } = await contract.newCaller({ max_result_bytes: 1024 * 1024 });
    const keys = ["a", "b", "c", "d", "e"];
    for (const key of keys) {
      const { fencingToken } = await grant(client, { key });
      const payload = new Uint8Array(1024 * 1024 - 4096).fill(key.charCodeAt(0));
      await client.complete({ ...ORDER, key, fencingToken, result: { ...success(""), payload } });
    }
    const claims = keys.map((key): ItemRequest => ({ case: "claim", value: { ...ORDER, key } }));
    const responses = await runBatch(client, [...claims, { case: "claim", value: { ...ORDER, key: "new" } }]);
    const replayed = responses.slice(0, keys.length);
    const refused = replayed.findIndex((response) => response.case === "error");
    expect(replayed.filter((response) => response.case === "claim")).toHaveLength(4);
    expect(itemErrorOf(responses[refused])).toMatchObject({
      code: Code.ResourceExhausted,
      reason: ErrorReason.RESPONSE_TOO_LARGE,
    });
    expect(responses.at(-1)).toMatchObject({ case: "claim", value: { outcome: { case: "claimed" } } });
    const alone = await client.claim({ ...ORDER, key: keys[refused] ?? "" });
    expect(alone.outcome).toMatchObject({ case: "completed", value: { resultExpired: false } });
  });

  test("fails only the item that Postgres refuses, as a bug without detail", async () => {
    const { client } = await contract.newCaller();
    await refuseKey(contract.database, "poison");
    const keys = ["a", "poison", "b", "c"];
    const responses = await runBatch(
      client,
      keys.map((key) => ({ case: "claim", value: { ...ORDER, key } })),
    );
    expect(responses.map((response) => response.case)).toEqual(["claim", "error", "claim", "claim"]);
    const error = itemErrorOf(responses[1]);
    expect(error).toMatchObject({ code: Code.Internal, reason: ErrorReason.INTERNAL });
    expect(error.message).not.toContain("poisoned");
    const requestId = error.metadata.request_id;
    expect(contract.server.log).toContainEqual(expect.objectContaining({ level: 50, requestId }));
  });
});

/** Makes Postgres refuse every row with this key, as a defect would. */
async function refuseKey(
  database: { query: (text: string) => Promise<unknown> },
  key: string,
): Promise<void> {
  await database.query(`
    create or replace function refuse_key() returns trigger language plpgsql as $$
    begin
      if new.key = '${key}' then raise exception 'poisoned'; end if;
      return new;
    end $$`);
  await database.query(`
    create or replace trigger refuse_key before insert or update on records
       for each row execute function refuse_key()`);
}
