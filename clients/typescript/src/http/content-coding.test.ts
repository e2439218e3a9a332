import { deflateSync, gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { inAcceptedCoding } from "./content-coding.ts";

const encoded = (coding: string, body: Uint8Array) => ({
  status: 201,
  headers: { "content-encoding": coding, "content-type": "text/plain" },
  body,
});

test.each([
  ["gzip", gzipSync("charged")],
  ["GZIP", gzipSync("charged")],
  ["x-gzip", gzipSync("charged")],
  ["deflate", deflateSync("charged")],
])("%s is decoded for a client that does not accept it", async (coding, body) => {
  const { headers, body: decoded } = await inAcceptedCoding(encoded(coding, body), "identity");
  expect(Buffer.from(decoded ?? []).toString()).toBe("charged");
  expect(headers).toEqual({ "content-type": "text/plain" });
});

test.each([undefined, "gzip", "br, GZIP;q=0.1", "*", "deflate;q=0, *;q=0.5"])(
  "a client that sends Accept-Encoding: %s gets gzip as it is stored",
  async (acceptEncoding) => {
    const response = encoded("gzip", gzipSync("charged"));
    expect(await inAcceptedCoding(response, acceptEncoding)).toBe(response);
  },
);

test.each(["", "gzip;q=0", "br", "*;q=0", "gzip;q=0, *", "gzip;q=none"])(
  "a client that sends Accept-Encoding: %s gets gzip decoded",
  async (acceptEncoding) => {
    const { headers } = await inAcceptedCoding(encoded("gzip", gzipSync("charged")), acceptEncoding);
    expect(headers).not.toHaveProperty("content-encoding");
  },
);

test.each([
  ["damaged bytes", "gzip", Buffer.from("charged")],
  ["an unknown coding", "compress", Buffer.from("charged")],
  ["a name of Object's prototype", "constructor", Buffer.from("charged")],
  ["several codings", "gzip, gzip", gzipSync(gzipSync("charged"))],
  ["more than 1 MiB when decoded", "gzip", gzipSync(Buffer.alloc(64 * 2 ** 20))],
])("a body with %s is returned as it is stored", async (_, coding, body) => {
  const response = encoded(coding, body);
  expect(await inAcceptedCoding(response, "identity")).toBe(response);
});
