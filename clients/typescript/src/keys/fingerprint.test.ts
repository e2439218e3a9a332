import { expect, test } from "vitest";
import { OncewardError } from "../errors/errors.ts";
import { fingerprintOf, fingerprintWithFiles } from "./fingerprint.ts";

function hex(value: unknown): string {
  return Buffer.from(fingerprintOf(value)).toString("hex");
}

test("a value counts as JSON.stringify takes it: a Date's text, undefined omitted or null", () => {
  const value = { at: new Date(0), note: undefined, lines: [undefined, Symbol("s")] };
  expect(hex(value)).toBe(hex({ at: "1970-01-01T00:00:00.000Z", lines: [null, null] }));
});

test("omissions apply to the JSON of a value", () => {
  const order = { toJSON: () => ({ id: 1, sentAt: 2 }) };
  expect(Buffer.from(fingerprintOf(order, { omit: ["/sentAt"] })).toString("hex")).toBe(hex({ id: 1 }));
});

test("an omitted member may be anything; one beside it that can't be hashed is refused", () => {
  const order = { id: 1, connection: new Map(), at: { now: new Set() } };
  const omit = ["/connection", "/at/now", "/at/now/deeper"];
  expect(Buffer.from(fingerprintOf(order, { omit })).toString("hex")).toBe(hex({ id: 1, at: {} }));
  expect(() => fingerprintOf(order, { omit: ["/connection"] })).toThrow("has a Set at /at/now");
  const lines = Object.assign(new Map(), { sentAt: 1 });
  expect(() => fingerprintOf(lines, { omit: ["/sentAt"] })).toThrow("is a Map");
});

test.each([
  ["a BigInt", { amount: 1n }],
  ["a function", () => {}],
  ["a function within", { amount: 1, round: () => {} }],
  ["an invalid Date", { at: new Date(Number.NaN) }],
  ["a value whose toJSON throws", { toJSON: () => JSON.parse("{") }],
  [
    "a value whose toJSON is itself",
    new (class {
      toJSON() {
        return this;
      }
    })(),
  ],
  ["undefined alone", undefined],
])("%s is refused by name", (_, value) => {
  expect(() => fingerprintOf(value)).toThrow(OncewardError);
  expect(() => fingerprintOf(value)).toThrow(
    expect.objectContaining({
      reason: "INVALID_REQUEST",
      violations: [expect.objectContaining({ field: "fingerprint" })],
    }),
  );
});

test("a refused part is named by its path, up to a length", () => {
  const form = { lines: [{ "a/b~c": new Map() }] };
  expect(() => fingerprintOf(form)).toThrow(
    /^fingerprint must be .*, has a Map at \/lines\/0\/a~1b~0c; pass /,
  );
  const long = { ["x".repeat(1_000_000)]: 1n };
  const error = expect.objectContaining({ message: expect.stringMatching(/has a BigInt at \/x{255}$/) });
  expect(() => fingerprintOf(long)).toThrow(error);
});

function upload(content: string, name = "a.txt", type = "text/plain", lastModified = 1): FormData {
  const form = new FormData();
  form.append("title", "receipt");
  form.append("file", new File([content], name, { type, lastModified }));
  return form;
}

test("a file counts by its bytes, name and type, and not by when it was received", async () => {
  const print = async (...args: Parameters<typeof upload>) =>
    Buffer.from(await fingerprintWithFiles(upload(...args))).toString("hex");
  const first = await print("charged");
  expect(await print("charged", "a.txt", "text/plain", 2)).toBe(first);
  const others = [
    await print("declined"),
    await print("charged", "b.txt"),
    await print("charged", "a.txt", "text/html"),
  ];
  expect(new Set([first, ...others]).size).toBe(4);
});

test("every part of a large file counts", async () => {
  const bytes = new Uint8Array(2 * 1024 * 1024 + 1);
  const prints = new Set<string>();
  for (const place of [0, 1024 * 1024, bytes.byteLength - 1]) {
    const changed = bytes.with(place, 1);
    prints.add(Buffer.from(await fingerprintWithFiles(new Blob([changed]))).toString("hex"));
  }
  expect(prints.size).toBe(3);
});

test("a file that can't be read without waiting is refused by the function that doesn't wait", () => {
  expect(() => fingerprintOf({ upload: upload("charged") })).toThrow(
    /has a File at \/upload, whose content is read by await fingerprintWithFiles\(\)/,
  );
});
