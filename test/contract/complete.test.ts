import { expect, test } from "vitest";
import { Record_State, Result_Kind } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import { errorOf } from "../support/calls/errors.ts";
import { bytes, complete, grant, lookUp, ORDER, success } from "../support/calls/verbs.ts";
import { describeContract } from "../support/servers/contract.ts";
import { describeSharedContract } from "../support/servers/shared-contract.ts";

describeSharedContract("Complete", (contract) => {
  test("returns when the claim was completed and when the key is forgotten", async () => {
    const { client } = await contract.newCaller();
    const { fencingToken } = await grant(client);
    const completion = await client.complete({ ...ORDER, fencingToken, result: success("done") });
    const record = await lookUp(client);
    expect(completion.alreadyCompleted).toBe(false);
    expect(completion.completedAt).toEqual(record.completedAt);
    expect(completion.expiresAt).toEqual(record.expiresAt);
    expect(record.state).toBe(Record_State.COMPLETED);
  });

  test("stores a result that is replayed byte for byte", async () => {
    const { client } = await contract.newCaller();
    const result = {
      ...success(""),
      payload: Uint8Array.from({ length: 256 }, (_, byte) => byte),
      contentType: "application/json; charset=utf-8",
      metadata: { status: "201", "x-\u20ac": 'line one\nline "two"', empty: "", ["__proto__"]: "kept" },
    };
    await complete(client, result);
    const { outcome } = await client.claim(ORDER);
    expect(outcome).toMatchObject({ case: "completed", value: { result } });
    if (outcome.case !== "completed") return;
    expect(Object.entries(outcome.value.result?.metadata ?? {}).sort()).toEqual(
      Object.entries(result.metadata).sort(),
    );
  });

  test("stores a result without a payload, a content type or metadata", async () => {
    const { client } = await contract.newCaller();
    await complete(client, success(""));
    const { outcome } = await client.claim(ORDER);
    expect(outcome).toMatchObject({
      case: "completed",
      value: { result: { ...success(""), contentType: "", metadata: {} }, resultExpired: false },
    });
  });

  test("stores results of every size that the policy allows", async () => {
    const { client } = await contract.newCaller({ max_result_bytes: 1024 * 1024 });
    for (const size of [64 * 1024, 64 * 1024 + 1, 1024 * 1024]) {
      const payload = new Uint8Array(size).map((_, index) => index % 251);
      const { fencingToken } = await grant(client, { key: `of-${size}` });
      await client.complete({
        ...ORDER,
        key: `of-${size}`,
        fencingToken,
        result: { ...success(""), payload },
      });
      const { outcome } = await client.claim({ ...ORDER, key: `of-${size}` });
      if (outcome.case !== "completed") throw new Error(`answered ${outcome.case}`);
      expect(Buffer.compare(outcome.value.result?.payload ?? bytes(""), payload)).toBe(0);
    }
  });

  test("with a result larger than the policy allows is refused, and the claim stays held", async () => {
    const { client } = await contract.newCaller({ max_result_bytes: 10 });
    const { fencingToken } = await grant(client);
    const before = await lookUp(client);
    const error = await errorOf(client.complete({ ...ORDER, fencingToken, result: success("eleven bytes") }));
    expect(error).toMatchObject({
      code: "InvalidArgument",
      reason: "RESULT_TOO_LARGE",
      metadata: { limit_bytes: "10", actual_bytes: "12" },
    });
    expect(await lookUp(client)).toEqual(before);
    await client.complete({ ...ORDER, fencingToken, result: success("ten bytes.") });
  });

  test("counts a result's metadata towards its size", async () => {
    const { client } = await contract.newCaller({ max_result_bytes: 20 });
    const { fencingToken } = await grant(client);
    const withMetadata = (value: string) => ({ ...success("ten bytes."), metadata: { a: value } });
    const error = await errorOf(client.complete({ ...ORDER, fencingToken, result: withMetadata('"\u20ac') }));
    expect(error).toMatchObject({
      reason: "RESULT_TOO_LARGE",
      metadata: { limit_bytes: "20", actual_bytes: "23" },
    });
    await client.complete({ ...ORDER, fencingToken, result: withMetadata("22") });
  });

  test("of a released claim is refused, and the key stays free", async () => {
    const { client } = await contract.newCaller();
    const { fencingToken } = await grant(client);
    await client.release({ ...ORDER, fencingToken });
    const error = await errorOf(client.complete({ ...ORDER, fencingToken, result: success("done") }));
    expect(error).toMatchObject({ code: "FailedPrecondition", reason: "ALREADY_RELEASED" });
    expect((await lookUp(client)).state).toBe(Record_State.RELEASED);
  });

  test("of a key that was never claimed, or whose retention has ended, finds no record", async () => {
    const { client, timePasses } = await contract.newCaller();
    const { fencingToken } = await grant(client);
    const never = { ...ORDER, key: "never", fencingToken, result: success("done") };
    expect(await errorOf(client.complete(never))).toMatchObject({
      code: "NotFound",
      reason: "RECORD_NOT_FOUND",
    });
    await timePasses(73 * 3600);
    expect(await errorOf(client.complete({ ...never, ...ORDER }))).toMatchObject({
      reason: "RECORD_NOT_FOUND",
    });
  });

  test("with a token that was never granted is superseded", async () => {
    const { client } = await contract.newCaller();
    const { fencingToken } = await grant(client);
    const forged = { ...ORDER, fencingToken: fencingToken + 1n, result: success("done") };
    expect(await errorOf(client.complete(forged))).toMatchObject({ reason: "CLAIM_SUPERSEDED" });
    const largest = { ...forged, fencingToken: 2n ** 63n - 1n };
    expect(await errorOf(client.complete(largest))).toMatchObject({ reason: "CLAIM_SUPERSEDED" });
    expect((await lookUp(client)).state).toBe(Record_State.IN_PROGRESS);
  });
});

describeSharedContract("A repeated Complete", (contract) => {
  const result = { ...success("done"), contentType: "text/plain", metadata: { a: "1", b: "2" } };

  test("with the same result reports that it was already stored, and changes nothing", async () => {
    const { client } = await contract.newCaller();
    const { fencingToken } = await grant(client);
    const first = await client.complete({ ...ORDER, fencingToken, result });
    const before = await lookUp(client);
    const reordered = { ...result, metadata: { b: "2", a: "1" } };
    const again = await client.complete({ ...ORDER, fencingToken, result: reordered });
    expect(again).toEqual({ ...first, alreadyCompleted: true });
    expect(await lookUp(client)).toEqual(before);
  });

  test.each([
    ["payload", { ...result, payload: bytes("other") }],
    ["kind", { ...result, kind: Result_Kind.FAILURE }],
    ["content type", { ...result, contentType: "text/html" }],
    ["metadata", { ...result, metadata: { a: "1", b: "3" } }],
    ["metadata moved into the payload", { ...result, metadata: {}, payload: bytes("1:a1:11:b1:2done") }],
  ])("with another %s is refused, and the stored result stays", async (_, other) => {
    const { client } = await contract.newCaller();
    const { fencingToken } = await complete(client, result);
    const before = await lookUp(client);
    expect(await errorOf(client.complete({ ...ORDER, fencingToken, result: other }))).toMatchObject({
      code: "FailedPrecondition",
      reason: "ALREADY_COMPLETED",
    });
    expect(await lookUp(client)).toEqual(before);
  });

  test("is distinguished from one with another result also after the result is gone", async () => {
    const { client, timePasses, sweep } = await contract.newCaller({ result_retention_s: 3600 });
    const { fencingToken } = await complete(client, result);
    await timePasses(3600 + 180);
    for (const sweeps of [false, true]) {
      if (sweeps) await sweep();
      const same = await client.complete({ ...ORDER, fencingToken, result });
      expect(same.alreadyCompleted).toBe(true);
      const other = client.complete({ ...ORDER, fencingToken, result: success("other") });
      expect(await errorOf(other)).toMatchObject({ reason: "ALREADY_COMPLETED" });
    }
  });

  test("that is concurrent with the first one is answered as if it came later", async () => {
    const { client } = await contract.newCaller();
    const { fencingToken } = await grant(client);
    const replies = await Promise.all(
      Array.from({ length: 5 }, () => client.complete({ ...ORDER, fencingToken, result })),
    );
    expect(replies.filter((reply) => !reply.alreadyCompleted)).toHaveLength(1);
  });
});

describeContract("Complete on a server", (contract) => {
  test("with more metadata than 16 KiB as JSON is refused, and with as much is stored", async () => {
    const { client } = await contract.newCaller();
    const { fencingToken } = await grant(client);
    // {"a":"…","b":"…","c":"…","d":"…"} has 29 bytes without its values.
    const withMetadata = (bytes: number) => {
      const value = (length: number) => "\n".repeat(length / 2) + "x".repeat(length % 2);
      const rest = bytes - 29 - 3 * 4096;
      const metadata = { a: value(4096), b: value(4096), c: value(4096), d: value(rest) };
      return { ...ORDER, fencingToken, result: { ...success("done"), metadata } };
    };
    expect(await errorOf(client.complete(withMetadata(16 * 1024 + 1)))).toMatchObject({
      code: "InvalidArgument",
      reason: "INVALID_REQUEST",
      fields: ["result.metadata"],
    });
    await client.complete(withMetadata(16 * 1024));
    expect((await lookUp(client)).result?.metadata).toEqual(withMetadata(16 * 1024).result.metadata);
  });
});
