import { expect, test } from "vitest";
import { createTestingOnceward } from "../testing.ts";
import { base64Url, sha256, utf8Bytes } from "../wire/bytes.ts";
import { createGuard } from "./guard.ts";

const bytes = new Uint8Array([1, 2, 3]);
const digest = base64Url(sha256(bytes));

/** Sends requests with one key and these bodies, as a framework has parsed them. Returns the statuses. */
async function statusesOf(contentType: string, ...bodies: unknown[]): Promise<number[]> {
  await using testing = createTestingOnceward();
  const guard = createGuard<object>(testing.onceward, { namespace: "uploads", caller: () => "a" });
  const statuses: number[] = [];
  for (const body of bodies) {
    const path = "/uploads";
    const request = {
      method: "POST",
      route: path,
      path,
      query: "",
      header: (name: string) => ({ "idempotency-key": '"k"', "content-type": contentType })[name],
      setHeader: () => {},
      body: async () => body,
    };
    const response = { status: 201, headers: new Headers(), body: new Uint8Array(), sent: undefined };
    const answer = await guard({ ...request, native: {} }, () => ({
      disconnected: new AbortController().signal,
      handled: Promise.resolve(response),
      abandon: () => {},
    }));
    statuses.push(answer.kind === "answered" ? answer.response.status : 0);
  }
  return statuses;
}

test("bytes and a JSON text of their hash are different requests", async () => {
  expect(await statusesOf("application/json", bytes, digest)).toEqual([0, 422]);
  expect(await statusesOf("application/json", digest, bytes)).toEqual([0, 422]);
  expect(await statusesOf("text/plain", bytes, digest)).toEqual([0, 422]);
});

test("a text of a body parser is the request that its bytes are", async () => {
  expect(await statusesOf("text/plain", "café", utf8Bytes("café"))).toEqual([0, 201]);
});

test("a value of a body parser is the request that its JSON is", async () => {
  expect(await statusesOf("application/json", { a: 1 }, utf8Bytes('{ "a": 1.0 }'))).toEqual([0, 201]);
});
