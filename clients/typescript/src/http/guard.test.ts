import { expect, test, vi } from "vitest";
import { idempotent } from "../http.ts";
import { joinKey } from "../keys/keys.ts";
import { createTestingOnceward } from "../testing.ts";

const request = () =>
  new Request("http://localhost/charges", { method: "POST", headers: { "idempotency-key": "k-1" } });
const options = { namespace: "charges", caller: () => "a-1", fingerprint: () => 1 };

/** Stores a result as another program with a key of the tenant may: with any metadata. */
async function storeForeign(metadata: Readonly<Record<string, string>>) {
  const { onceward } = createTestingOnceward();
  const encode = () => ({ payload: new Uint8Array(), contentType: "text/plain", metadata: { ...metadata } });
  const codec = { encode, decode: () => undefined };
  const key = joinKey("POST", "/charges", "a-1", "k-1");
  await onceward.run({ namespace: "charges", key, fingerprint: 1, codec }, () => undefined);
  return idempotent(onceward, options, vi.fn());
}

test("a replay has only allowed headers, whatever the record holds", async () => {
  const handle = await storeForeign({
    "http-status": "201",
    "http-header-etag": '"1"',
    "http-header-set-cookie": "session=stolen",
    "http-header-Set-Cookie": "session=stolen",
    "http-header-transfer-encoding": "chunked",
    "http-header-connection": "upgrade",
    "http-header-x-internal": "1",
  });
  const { status, headers } = await handle(request());
  expect(status).toBe(201);
  expect(Object.fromEntries(headers)).toEqual({
    "content-type": "text/plain",
    etag: '"1"',
    "idempotency-replayed": "true",
  });
});

test.each(["101", "103", "0", "600", "200.5", "ok"])(
  "a record with the status %s is not replayed: its result is gone",
  async (status) => {
    const handle = await storeForeign({ "http-status": status, "http-header-set-cookie": "session=stolen" });
    const answer = await handle(request());
    expect([answer.status, answer.headers.get("set-cookie")]).toEqual([410, null]);
  },
);
