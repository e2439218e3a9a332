import { beforeEach, describe, expect, test } from "vitest";
import { connectClient, type IdempotencyClient } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { grant, ORDER, seconds, success } from "../support/calls/verbs.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";

const { database, server } = useServer();

let client: IdempotencyClient;
beforeEach(async () => {
  client = connectClient(server, (await createTenant(database)).apiKey);
});

/** Completes a granted claim; returns the fields of the refusal, or undefined if it is stored. */
async function completeWith(result: object): Promise<readonly string[] | string | undefined> {
  const { fencingToken } = await grant(client);
  const call = client.complete({ ...ORDER, fencingToken, result: { ...success(""), ...result } });
  return await call.then(
    () => undefined,
    async () => {
      const { reason, fields } = await errorOf(call);
      return reason === "INVALID_REQUEST" ? fields : reason;
    },
  );
}

/** With another entry, whose name and value are a letter each, 16 KiB as compact JSON. */
const MOST_METADATA = { a: "v".repeat(4096), b: "v".repeat(4096), c: "v".repeat(4096), d: "v".repeat(4059) };

/** The numbers are the contract's, on purpose not the constants of the server. */
describe("a completion is stored at each limit of the contract, and refused one byte beyond", () => {
  test.each<[what: string, atLimit: object, beyond: object, refusal: readonly string[] | string]>([
    [
      "the default size of a payload",
      { payload: new Uint8Array(65_536) },
      { payload: new Uint8Array(65_537) },
      "RESULT_TOO_LARGE",
    ],
    [
      "the default size of a payload with its metadata as compact JSON, here of 9 bytes",
      { payload: new Uint8Array(65_527), metadata: { a: "v" } },
      { payload: new Uint8Array(65_528), metadata: { a: "v" } },
      "RESULT_TOO_LARGE",
    ],
    [
      "metadata as compact JSON, of 16 KiB",
      { metadata: { ...MOST_METADATA, e: "v" } },
      { metadata: { ...MOST_METADATA, e: "vv" } },
      ["result.metadata"],
    ],
    [
      "a content type",
      { contentType: "c".repeat(255) },
      { contentType: "c".repeat(256) },
      ["result.content_type"],
    ],
    [
      "a name of metadata",
      { metadata: { ["n".repeat(128)]: "v" } },
      { metadata: { ["n".repeat(129)]: "v" } },
      ["result.metadata"],
    ],
    [
      "a value of metadata",
      { metadata: { name: "v".repeat(4096) } },
      { metadata: { name: "v".repeat(4097) } },
      ["result.metadata"],
    ],
  ])("%s", async (_, atLimit, beyond, refusal) => {
    expect(await completeWith(beyond)).toEqual(refusal);
    client = connectClient(server, (await createTenant(database)).apiKey);
    expect(await completeWith(atLimit)).toBeUndefined();
  });
});

test("the shortest lease is a second, and the shortest retention a minute", async () => {
  await grant(client, { key: "shortest", lease: seconds(1), retention: seconds(60) });
  const lease = client.claim({ ...ORDER, lease: seconds(0.999) });
  expect((await errorOf(lease)).fields).toEqual(["lease"]);
  const retention = client.claim({ ...ORDER, retention: seconds(59) });
  expect((await errorOf(retention)).fields).toEqual(["retention"]);
});

test("a release's reason has at most 1,024 bytes, a checkpoint's name 128", async () => {
  const { fencingToken } = await grant(client);
  const named = (length: number) =>
    client.extendLease({ ...ORDER, fencingToken, checkpoint: { name: "n".repeat(length) } });
  expect((await errorOf(named(129))).fields).toEqual(["checkpoint.name"]);
  await named(128);
  const tooLong = client.release({ ...ORDER, fencingToken, reason: "r".repeat(1025) });
  expect((await errorOf(tooLong)).fields).toEqual(["reason"]);
  await client.release({ ...ORDER, fencingToken, reason: "r".repeat(1024) });
});
