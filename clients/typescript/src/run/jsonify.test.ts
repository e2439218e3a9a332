import { expectTypeOf, test } from "vitest";
import { completeIn, type Executor, once } from "../inbox.ts";
import type { Claim, Onceward, RunResult } from "../index.ts";
import { bytesCodec } from "./codec.ts";
import type { Jsonify, NoJsonForm } from "./jsonify.ts";

interface Charge {
  readonly id: string;
  readonly amount: number;
  readonly note?: string;
  readonly name: string;
  readonly message: string;
  readonly lines: readonly { readonly sku: string; readonly tags: string[] }[];
}

type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

class Order {
  readonly id = "order-1";
  readonly at = new Date(0);
  readonly #secret = "s";
  charge(): string {
    return this.#secret;
  }
}

test("a JSON value keeps its type", () => {
  expectTypeOf<Jsonify<Charge>>().toEqualTypeOf<Charge>();
  expectTypeOf<Jsonify<"a" | 1 | true | null>>().toEqualTypeOf<"a" | 1 | true | null>();
  expectTypeOf<Jsonify<[number, string]>>().toEqualTypeOf<[number, string]>();
  expectTypeOf<Jsonify<Record<string, number>>>().toEqualTypeOf<Record<string, number>>();
  expectTypeOf<Jsonify<Json>>().toExtend<Json>();
  expectTypeOf<Json>().toExtend<Jsonify<Json>>();
  expectTypeOf<Jsonify<unknown>>().toEqualTypeOf<unknown>();
  // biome-ignore lint/suspicious/noExplicitAny: it is what is tested.
  expectTypeOf<Jsonify<any>>().toBeAny();
  expectTypeOf<Jsonify<undefined>>().toEqualTypeOf<undefined>();
  expectTypeOf<Jsonify<void>>().toEqualTypeOf<void>();
});

test("a value that JSON changes has the type of what it becomes", () => {
  expectTypeOf<Jsonify<Date>>().toEqualTypeOf<string>();
  expectTypeOf<Jsonify<{ at: Date; until: Date | null }>>().toEqualTypeOf<{
    at: string;
    until: string | null;
  }>();
  expectTypeOf<Jsonify<URL[]>>().toEqualTypeOf<string[]>();
  expectTypeOf<Jsonify<Order>>().toEqualTypeOf<{ readonly id: "order-1"; readonly at: string }>();
  expectTypeOf<Jsonify<Uint8Array>>().toEqualTypeOf<Record<string, number>>();
  expectTypeOf<Jsonify<Buffer>>().toEqualTypeOf<{ type: "Buffer"; data: number[] }>();
});

test("a type whose values are refused says so, alone and in a member", () => {
  expectTypeOf<Jsonify<bigint>>().toEqualTypeOf<NoJsonForm<bigint>>();
  expectTypeOf<Jsonify<() => void>>().toEqualTypeOf<NoJsonForm<() => void>>();
  expectTypeOf<Jsonify<{ lines: Map<string, number> }>>().toEqualTypeOf<{
    lines: NoJsonForm<Map<string, number>>;
  }>();
  expectTypeOf<Jsonify<Response | null>>().toEqualTypeOf<NoJsonForm<Response> | null>();
  type Refused =
    | Set<string>
    | Promise<string>
    | RegExp
    | ArrayBuffer
    | Float64Array
    | WeakMap<object, string>
    | Request
    | Headers
    | FormData
    | URLSearchParams
    | Blob
    | ReadableStream
    | Generator<number>
    | AsyncGenerator<number>;
  expectTypeOf<Exclude<Jsonify<Refused>, NoJsonForm<Refused>>>().toBeNever();
});

test("members that JSON omits may be missing, and are null in an array", () => {
  expectTypeOf<Jsonify<{ a: string | undefined; b: undefined; c: () => void }>>().toEqualTypeOf<{
    a?: string;
  }>();
  expectTypeOf<Jsonify<(string | undefined)[]>>().toEqualTypeOf<(string | null)[]>();
  expectTypeOf<Jsonify<[symbol, Date]>>().toEqualTypeOf<[null, string]>();
});

test("run, runDetailed and the inbox have the types of their values", () => {
  const operation = { namespace: "charges", key: "order-1" };
  const use = async (onceward: Onceward, tx: Executor, claim: Claim) => {
    const made = () => ({ at: new Date(0) });
    expectTypeOf(await onceward.run(operation, made)).toEqualTypeOf<{ at: string }>();
    expectTypeOf(await onceward.run(operation, async () => {})).toEqualTypeOf<void>();
    expectTypeOf(await onceward.runDetailed(operation, made)).toEqualTypeOf<RunResult<{ at: string }>>();
    expectTypeOf(await once(tx, { consumer: "a", key: "b" }, made)).toExtend<{ value: { at: string } }>();
    expectTypeOf(await completeIn(tx, claim, made)).toEqualTypeOf<{ at: string }>();
    const coded = { ...operation, codec: bytesCodec };
    expectTypeOf(await onceward.run(coded, () => Uint8Array.of(1))).toEqualTypeOf<Uint8Array>();
    expectTypeOf(await completeIn(tx, claim, () => Uint8Array.of(1), bytesCodec)).toEqualTypeOf<Uint8Array>();
    // @ts-expect-error: a response is not stored.
    (await onceward.run(operation, () => fetch("https://example.com"))).status;
    // @ts-expect-error: JSON has no form for it.
    const date: Date = await onceward.run(operation, () => new Date(0));
    return date;
  };
  expectTypeOf(use).returns.resolves.toEqualTypeOf<Date>();
});
