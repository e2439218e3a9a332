import { expect, test } from "vitest";
import { InvalidRequestError } from "./error-catalogue.ts";
import { createOnceward as createNodeOnceward } from "./onceward.ts";
import { createOnceward as createWebOnceward } from "./web.ts";

const apiKey = "ow_x_y";

test.each([
  ["no URL", "localhost:50051"],
  ["another scheme", "ftp://localhost"],
  ["no addresses", []],
  ["one of several that is no URL", ["http://localhost:50051", "localhost"]],
  ["nothing", undefined as never],
])("an address that is %s is refused by name", (_, address) => {
  expect(() => createNodeOnceward({ address, apiKey })).toThrow(InvalidRequestError);
  expect(() => createNodeOnceward({ address, apiKey })).toThrow(/^address must be a URL/);
});

test("a browser's client refuses the same", () => {
  expect(() => createWebOnceward({ address: "localhost", apiKey })).toThrow(/^address must be a URL/);
});

test("an API key that can't be one is refused, and not shown", () => {
  for (const create of [createNodeOnceward, createWebOnceward]) {
    const options = { address: "http://localhost", apiKey: "ow secret" };
    expect(() => create(options)).toThrow(/^apiKey must be an API key/);
    expect(() => create(options)).not.toThrow(/secret/);
  }
});

test("an option that can't be meant is refused before anything is opened", () => {
  for (const create of [createNodeOnceward, createWebOnceward]) {
    expect(() => create({ address: "http://localhost", apiKey, waitMs: -1 })).toThrow(/^waitMs must be/);
  }
});
