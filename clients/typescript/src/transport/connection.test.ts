import { expect, test, vi } from "vitest";
import { InvalidRequestError } from "../errors/catalogue.ts";
import { createOnceward as createNodeOnceward } from "../run/onceward.ts";
import { createOnceward as createWebOnceward } from "../web.ts";

const apiKey = "ow_x_y";

test.each([
  ["no URL", "localhost:50051"],
  ["another scheme", "ftp://localhost"],
  ["no addresses", []],
  ["one of several that is not a URL", ["http://localhost:50051", "localhost"]],
  ["nothing", undefined as never],
])("an address that is %s is refused by name", (_, address) => {
  expect(() => createNodeOnceward({ address, apiKey })).toThrow(InvalidRequestError);
  expect(() => createNodeOnceward({ address, apiKey })).toThrow(/^address must be a URL/);
});

test("a browser's client refuses the same addresses", () => {
  expect(() => createWebOnceward({ address: "localhost", apiKey })).toThrow(/^address must be a URL/);
});

test.each([
  ["a path", "http://localhost:50051/onceward", /^address must have no path.*is "\/onceward"$/],
  ["a query", "http://localhost:50051?tenant=acme", /^address must have no query/],
  ["a fragment", "http://localhost:50051#acme", /^address must have no fragment/],
  ["a user and a password", "http://acme:secret@localhost:50051", /^address must have no user or password/],
])("an address with %s, which gRPC has no place for, is refused", (_, address, message) => {
  expect(() => createNodeOnceward({ address, apiKey })).toThrow(InvalidRequestError);
  expect(() => createNodeOnceward({ address, apiKey })).toThrow(message);
  expect(() => createNodeOnceward({ address, apiKey })).not.toThrow(/secret/);
});

test("an address may end in a slash", () => {
  expect(() => createNodeOnceward({ address: "http://localhost:50051/", apiKey })).not.toThrow();
});

test.each([
  ["https://example.com", "https://example.com/onceward.v1.IdempotencyService/Lookup"],
  ["https://example.com/", "https://example.com/onceward.v1.IdempotencyService/Lookup"],
  ["https://example.com/api/once", "https://example.com/api/once/onceward.v1.IdempotencyService/Lookup"],
  ["https://example.com/api/once/", "https://example.com/api/once/onceward.v1.IdempotencyService/Lookup"],
])("a browser's client at %s calls below its path", async (address, called) => {
  const fetch = vi.fn(async () => new Response(null, { headers: { "content-type": "application/proto" } }));
  await using onceward = createWebOnceward({ address, apiKey, fetch });
  await onceward.api.lookup({ namespace: "charges", key: "order-1" });
  expect(fetch).toHaveBeenCalledWith(called, expect.anything());
});

test.each(["https://example.com/?tenant=acme", "https://acme:secret@example.com"])(
  "a browser's client refuses %s, of which calls would ignore a part",
  (address) => {
    expect(() => createWebOnceward({ address, apiKey })).toThrow(/^address must have no/);
  },
);

test("an invalid API key is refused, and not shown", () => {
  for (const create of [createNodeOnceward, createWebOnceward]) {
    const options = { address: "http://localhost", apiKey: "ow secret" };
    expect(() => create(options)).toThrow(/^apiKey must be an API key/);
    expect(() => create(options)).not.toThrow(/secret/);
  }
});

test("an invalid option is refused before a connection is opened", () => {
  for (const create of [createNodeOnceward, createWebOnceward]) {
    expect(() => create({ address: "http://localhost", apiKey, waitMs: -1 })).toThrow(/^waitMs must be/);
  }
});
