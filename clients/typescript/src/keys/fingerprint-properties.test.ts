import canonicalize from "canonicalize";
import fc from "fast-check";
import { expect, test } from "vitest";
import { jsonCodec } from "../run/codec.ts";
import { sha256 } from "../wire/bytes.ts";
import { fingerprintOf, fingerprintWithFiles } from "./fingerprint.ts";

/** An instance of a built-in type: two with different `content` must have different fingerprints. */
interface Sample {
  readonly value: unknown;
  readonly content: unknown;
}

/** JSON without numbers that may have been rounded, which are refused. */
function jsonValues(constraints: fc.JsonSharedConstraints = {}): fc.Arbitrary<unknown> {
  return fc.jsonValue(constraints).filter((value) => !hasRoundedNumber(value));
}

function hasRoundedNumber(value: unknown): boolean {
  if (typeof value === "object" && value !== null) return Object.values(value).some(hasRoundedNumber);
  return typeof value === "number" && Math.abs(value) >= 2 ** 53 && Math.abs(value) < 1e21;
}

function ofText(make: (text: string) => unknown): fc.Arbitrary<Sample> {
  return fc.string().map((text) => ({ value: make(text), content: text }));
}

function ofBytes(make: (bytes: Uint8Array<ArrayBuffer>) => unknown): fc.Arbitrary<Sample> {
  const bytes = fc.uint8Array({ maxLength: 64 }).map((some) => new Uint8Array(some));
  return bytes.map((some) => ({ value: make(some), content: [...some] }));
}

function ofPairs(make: (pairs: [string, string][]) => unknown, minLength = 0): fc.Arbitrary<Sample> {
  const pairs = fc.array(fc.tuple(fc.string(), fc.string()), { minLength, maxLength: 4 });
  return pairs.map((some) => ({ value: make(some), content: some }));
}

/** Instances for which JSON has a form, which is their content. */
function ofJson(values: fc.Arbitrary<unknown>): fc.Arbitrary<Sample> {
  return values.map((value) => ({ value, content: JSON.parse(JSON.stringify(value)) }));
}

class WithPrivateField {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  get size(): number {
    return this.#text.length;
  }
}

class WithPublicField {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

function formOf(pairs: [string, string][], withFile: boolean): FormData {
  const form = new FormData();
  for (const [name, text] of pairs) {
    if (withFile) form.append(name, new Blob([text]), "upload.txt");
    else form.append(name, text);
  }
  return form;
}

const number = fc.integer({ min: -1000, max: 1000 });
const fileParts = fc.record({
  name: fc.string(),
  type: fc.constantFrom("", "text/plain"),
  text: fc.string(),
});

const BUILT_INS: Readonly<Record<string, fc.Arbitrary<Sample>>> = {
  "plain JSON": ofJson(jsonValues({ maxDepth: 3 })),
  Date: ofJson(fc.date({ noInvalidDate: true })),
  "invalid Date": fc.constant({ value: new Date(Number.NaN), content: "an invalid Date" }),
  URL: ofJson(fc.webUrl({ withQueryParameters: true }).map((url) => new URL(url))),
  Buffer: ofBytes((bytes) => [Buffer.from(bytes)]),
  Uint8Array: ofBytes((bytes) => [bytes]),
  Uint8ClampedArray: ofBytes((bytes) => new Uint8ClampedArray(bytes)),
  Int16Array: ofBytes((bytes) => new Int16Array(bytes)),
  Float64Array: ofBytes((bytes) => new Float64Array(bytes)),
  BigUint64Array: ofBytes((bytes) => BigUint64Array.from(bytes, BigInt)),
  DataView: ofBytes((bytes) => new DataView(bytes.buffer)),
  ArrayBuffer: ofBytes((bytes) => bytes.buffer),
  SharedArrayBuffer: ofBytes((bytes) => {
    const shared = new SharedArrayBuffer(bytes.byteLength);
    new Uint8Array(shared).set(bytes);
    return shared;
  }),
  URLSearchParams: ofPairs((pairs) => new URLSearchParams(pairs)),
  FormData: ofPairs((pairs) => formOf(pairs, false)),
  "FormData with files": ofPairs((pairs) => formOf(pairs, true), 1),
  Blob: fileParts.map(({ type, text }) => ({
    value: new Blob([text], { type }),
    content: ["Blob", type, text],
  })),
  File: fileParts.map(({ name, type, text }) => ({
    value: new File([text], name, { type }),
    content: ["File", name, type, text],
  })),
  Headers: ofText((text) => new Headers({ "x-text": encodeURIComponent(text.toWellFormed()) })),
  Request: ofText((body) => new Request("http://localhost/", { method: "POST", body })),
  Response: ofText((text) => new Response(text)),
  ReadableStream: ofText((text) => new Blob([text]).stream()),
  AbortSignal: ofText((text) => AbortSignal.abort(text)),
  Event: ofText((text) => new Event(text)),
  Map: ofPairs((pairs) => new Map(pairs)),
  Set: ofText((text) => new Set(text)),
  WeakMap: ofText((text) => new WeakMap([[new Set(), text]])),
  WeakSet: ofText((text) => new WeakSet([new Set(text)])),
  WeakRef: ofText((text) => new WeakRef(new Set(text))),
  Error: ofText((text) => new Error(text)),
  TypeError: ofText((text) => new TypeError(text)),
  AggregateError: ofText((text) => new AggregateError([], text)),
  DOMException: ofText((text) => new DOMException(text)),
  RegExp: ofText((text) => new RegExp(text.replaceAll(/[\\^$*+?.()|[\]{}/]/g, "\\$&"))),
  "RegExp match": number.map((index) => ({
    value: Object.assign(["x"], { index }),
    content: ["match", index],
  })),
  Promise: ofText((text) => Promise.resolve(text)),
  Function: ofText((text) => () => text),
  Generator: ofText((text) => text[Symbol.iterator]()),
  Symbol: ofText((text) => Symbol(text)),
  BigInt: fc.bigInt().map((value) => ({ value, content: `${value}n` })),
  "boxed Number": number.map((value) => ({ value: Object(value), content: ["Number", value] })),
  "boxed String": ofText((text) => Object(text)),
  "boxed Boolean": fc.boolean().map((value) => ({ value: Object(value), content: ["Boolean", value] })),
  "Intl.NumberFormat": fc
    .constantFrom("de", "en", "fr")
    .map((locale) => ({ value: new Intl.NumberFormat(locale), content: locale })),
  "sparse Array": fc
    .integer({ min: 1, max: 9 })
    .map((length) => ({ value: new Array(length), content: length })),
  "class with a private field": ofText((text) => new WithPrivateField(text)),
  "class with a public field": ofText((text) => new WithPublicField(text)),
};

/** In hexadecimal; undefined where the value is refused. */
async function fingerprint(value: unknown): Promise<string | undefined> {
  try {
    return Buffer.from(await fingerprintWithFiles(value)).toString("hex");
  } catch (error) {
    expect(error).toMatchObject({ reason: "INVALID_REQUEST", violations: [{ field: "fingerprint" }] });
    return undefined;
  }
}

async function expectEqualContent(type: string, first: Sample, second: Sample): Promise<void> {
  const [one, other] = [await fingerprint(first.value), await fingerprint(second.value)];
  if (one !== undefined && one === other) expect(first.content, type).toEqual(second.content);
}

test.each(Object.entries(BUILT_INS))(
  "two values of the type %s with one fingerprint have one content",
  async (type, samples) => {
    const property = fc.asyncProperty(samples, samples, (first, second) =>
      expectEqualContent(type, first, second),
    );
    await fc.assert(property, { numRuns: 50 });
  },
);

/**
 * Of these, other types have the same content: JSON writes a Date and a URL as texts, and bytes as numbers.
 */
const WRITTEN_AS_OTHERS = new Set(["Date", "URL", "Buffer", "Uint8Array"]);

test("values of different types have different fingerprints", async () => {
  const types = Object.keys(BUILT_INS).filter((type) => !WRITTEN_AS_OTHERS.has(type));
  const sampleOf = (type: string) => BUILT_INS[type] ?? fc.constant({ value: null, content: null });
  const pairs = fc.uniqueArray(fc.constantFrom(...types), { minLength: 2, maxLength: 2 });
  const samples = pairs.chain((names) => fc.tuple(fc.constant(names), ...names.map(sampleOf)));
  await fc.assert(
    fc.asyncProperty(samples, async ([names, ...drawn]) => {
      const [first, second] = await Promise.all(drawn.map(({ value }) => fingerprint(value)));
      if (first !== undefined) expect(first, names.join(", ")).not.toBe(second);
    }),
    { numRuns: 300 },
  );
});

test("the position of a value counts", async () => {
  const nested = fc.oneof(...Object.values(BUILT_INS));
  await fc.assert(
    fc.asyncProperty(nested, async ({ value }) => {
      const places = [[value], { a: value }, { b: value }, { a: [value] }, [[value]]];
      const found = await Promise.all(places.map(fingerprint));
      const hashed = found.filter((one) => one !== undefined);
      // A symbol or undefined leaves a member out, which is the same for both.
      if (typeof value !== "symbol") expect(new Set(hashed).size).toBe(hashed.length);
    }),
    { numRuns: 200 },
  );
});

/** Plain values and bodies, which are taken: an empty one of each is like any other empty one. */
const TAKEN = new Set(
  ["Object", "Array", "Proxy", "Date", "Buffer", "Uint8Array"].concat([
    "ArrayBuffer",
    "URLSearchParams",
    "FormData",
    "Blob",
  ]),
);

/** The other classes that the runtime has, and an instance where one can be made of nothing. */
const GLOBAL_INSTANCES = Object.getOwnPropertyNames(globalThis)
  .filter((name) => /^[A-Z]/.test(name) && !TAKEN.has(name))
  .flatMap((name): [string, object][] => {
    const type: unknown = Reflect.get(globalThis, name);
    if (typeof type !== "function") return [];
    try {
      return [[name, Reflect.construct(type, [])]];
    } catch {
      return [];
    }
  });

test.each(GLOBAL_INSTANCES)("an instance of the global %s is refused with its path", async (_, instance) => {
  expect(() => jsonCodec.encode({ lines: [0, { "a/b": instance }] })).toThrow(/ at \/lines\/1\/a~1b/);
  await expect(fingerprintWithFiles({ lines: [0, { "a/b": instance }] })).rejects.toMatchObject({
    reason: "INVALID_REQUEST",
    violations: [{ field: "fingerprint", description: expect.stringMatching(/ at \/lines\/1\/a~1b$/) }],
  });
});

test("JSON has the fingerprint of its canonical form", () => {
  fc.assert(
    fc.property(jsonValues(), (value) => {
      expect(fingerprintOf(value)).toEqual(sha256(canonicalize(value) ?? ""));
    }),
  );
});

test("bytes within a value have the fingerprint of their JSON", () => {
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      const buffer = Buffer.from(bytes);
      expect(fingerprintOf([bytes, buffer])).toEqual(
        sha256(canonicalize([{ ...bytes }, buffer.toJSON()]) ?? ""),
      );
    }),
  );
});
