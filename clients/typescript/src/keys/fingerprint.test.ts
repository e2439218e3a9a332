import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { OncewardError } from "../errors/errors.ts";
import { fingerprintOf, fingerprintWithFiles } from "./fingerprint.ts";

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function hex(value: unknown): string {
  return Buffer.from(fingerprintOf(value)).toString("hex");
}

test("the example of RFC 8785 section 3.2.2 is hashed in its canonical form", () => {
  const input = JSON.parse(`{
    "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
    "string": "\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\"\\/",
    "literals": [null, true, false]
  }`);
  const canonical =
    '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
    '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}';
  expect(hex(input)).toBe(sha256(canonical));
});

test("members are sorted by UTF-16 code units, as in RFC 8785 section 3.2.3", () => {
  const names = ["\u20ac", "\r", "\ufb33", "1", "\u{1f600}", "\u0080", "\u00f6"];
  const sorted = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\u{1f600}", "\ufb33"];
  const canonical = `{${sorted.map((name) => `${JSON.stringify(name)}:0`).join(",")}}`;
  expect(hex(Object.fromEntries(names.map((name) => [name, 0])))).toBe(sha256(canonical));
});

/** RFC 8785, appendix B: numbers by the bits of their IEEE 754 form, and what they are as JSON. */
const NUMBERS = [
  ["0000000000000000", "0"],
  ["8000000000000000", "0"],
  ["0000000000000001", "5e-324"],
  ["8000000000000001", "-5e-324"],
  ["7fefffffffffffff", "1.7976931348623157e+308"],
  ["ffefffffffffffff", "-1.7976931348623157e+308"],
  ["44b52d02c7e14af5", "9.999999999999997e+22"],
  ["44b52d02c7e14af6", "1e+23"],
  ["44b52d02c7e14af7", "1.0000000000000001e+23"],
  ["444b1ae4d6e2ef50", "1e+21"],
  ["3eb0c6f7a0b5ed8c", "9.999999999999997e-7"],
  ["3eb0c6f7a0b5ed8d", "0.000001"],
  ["41b3de4355555553", "333333333.3333332"],
  ["41b3de4355555554", "333333333.33333325"],
  ["41b3de4355555555", "333333333.3333333"],
  ["41b3de4355555556", "333333333.3333334"],
  ["41b3de4355555557", "333333333.33333343"],
  ["becbf647612f3696", "-0.0000033333333333333333"],
  ["43143ff3c1cb0959", "1424953923781206.2"],
] as const;

test.each(NUMBERS)("the number with the bits %s is hashed as %s", (bits, json) => {
  expect(hex([Buffer.from(bits, "hex").readDoubleBE()])).toBe(sha256(`[${json}]`));
});

test("equal requests have equal fingerprints, in any order in which they were built", () => {
  expect(hex({ amount: 100, to: { name: "Ada", iban: "X" } })).toBe(
    hex({ to: { iban: "X", note: undefined, name: "Ada" }, amount: 1e2 }),
  );
  expect(hex({ amount: 100 })).not.toBe(hex({ amount: "100" }));
});

test("a value counts as JSON.stringify takes it: a Date's text, undefined omitted or null", () => {
  const value = { at: new Date(0), note: undefined, lines: [undefined, Symbol("s")] };
  expect(hex(value)).toBe(hex({ at: "1970-01-01T00:00:00.000Z", lines: [null, null] }));
});

test("omitted members don't count, however deep, and a missing one has no effect", () => {
  const order = { id: 1, sentAt: 1700000000000, meta: { "trace/id": "t-1", shop: "s-1" } };
  const omit = ["/sentAt", "/meta/trace~1id", "/meta/absent", "/id/deeper"];
  expect(Buffer.from(fingerprintOf(order, { omit })).toString("hex")).toBe(
    hex({ id: 1, meta: { shop: "s-1" } }),
  );
  expect(order.meta).toHaveProperty("trace/id");
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

test("an invalid JSON Pointer is refused with its field", () => {
  expect(() => fingerprintOf({}, { omit: ["sentAt"] })).toThrow(/omit must be JSON Pointers .* has "sentAt"/);
});

test("32 bytes are used unchanged, and any other number of bytes is refused", () => {
  const bytes = new Uint8Array(32).fill(7);
  expect(fingerprintOf(bytes)).toBe(bytes);
  expect(() => fingerprintOf(Buffer.from("a whole body"))).toThrow(/32 of a SHA-256, is 12/);
});

const circular: { self?: unknown } = {};
circular.self = circular;

test.each([
  ["a BigInt", { amount: 1n }],
  ["a circular value", circular],
  ["NaN", { amount: Number.NaN }],
  ["an infinity", [Number.POSITIVE_INFINITY]],
  ["a number that is rounded", { id: 2 ** 53 }],
  ["a lone surrogate", { name: "\ud800" }],
  ["a function", () => {}],
  ["a function within", { amount: 1, round: () => {} }],
  ["a name with a lone surrogate", { "\udfff": 1 }],
  ["an invalid Date", { at: new Date(Number.NaN) }],
  ["a value nested too deeply", JSON.parse("[".repeat(100_000) + "]".repeat(100_000))],
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
