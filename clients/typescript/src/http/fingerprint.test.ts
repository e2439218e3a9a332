import { expect, test } from "vitest";
import { createTestingOnceward } from "../testing.ts";
import { base64Url, sha256 } from "../wire/bytes.ts";
import { createGuard } from "./guard.ts";

const bytes = new Uint8Array([1, 2, 3]);
const digest = base64Url(sha256(bytes));

/** Sends requests with one key and these bodies, as a framework has parsed them. Returns the statuses. */
async function statusesOf(...bodies: unknown[]): Promise<number[]> {
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
      key: '"k"',
      acceptEncoding: undefined,
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
  expect(await statusesOf(bytes, digest)).toEqual([0, 422]);
  expect(await statusesOf(digest, bytes)).toEqual([0, 422]);
});

test("bytes and such a text are replayed to their own duplicates", async () => {
  expect(await statusesOf(bytes, bytes)).toEqual([0, 201]);
  expect(await statusesOf(digest, digest)).toEqual([0, 201]);
  expect(await statusesOf(`${digest}=`, { text: digest })).toEqual([0, 422]);
});
