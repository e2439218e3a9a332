/**
 * The type of a value after it was stored as JSON and read again, which `run` returns without a codec: a Date is a
 * string, a member that may be undefined may be missing, methods are gone.
 *
 * A value that is refused (see `jsonCodec`), such as a BigInt, a Map or fetch's Response, is {@link NoJsonForm}, as far as its
 * type tells: an Error, NaN, and an instance with getters have types like those of other values.
 */
export type Jsonify<T> = unknown extends T
  ? T
  : T extends JsonValue | NoValue
    ? T
    : T extends bigint | Absent
      ? NoJsonForm<T>
      : T extends { toJSON(...args: never[]): infer Json }
        ? Jsonify<Json>
        : T extends Uint8Array
          ? Record<string, number>
          : T extends readonly unknown[]
            ? JsonifyElements<T>
            : T extends WithoutMembers
              ? NoJsonForm<T>
              : JsonifyMembers<T>;

/** The type of a value that can't be stored as JSON. There is no such value: the run throws a CompletionError. */
export interface NoJsonForm<T> {
  readonly "has no JSON form: return an object of its fields, or pass a codec": T;
}

/** Types that JSON does not change. Interfaces don't extend this type, and are mapped to themselves. */
type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [name: string]: JsonValue };

// biome-ignore lint/suspicious/noConfusingVoidType: a function without a return value returns void.
type NoValue = undefined | void;

/** Types that JSON omits of an object and writes as null in an array. */
type Absent =
  | undefined
  | symbol
  | ((...args: never[]) => unknown)
  | (abstract new (
      ...args: never[]
    ) => unknown);

/** Objects whose content is not in members: what can be iterated, awaited, or read as a body, and these built-in ones. */
type WithoutMembers =
  | { [Symbol.iterator](): unknown }
  | { [Symbol.asyncIterator](): unknown }
  | { then(...args: never[]): unknown }
  | { arrayBuffer(): Promise<unknown> }
  | WeakMap<WeakKey, unknown>
  | WeakSet<WeakKey>
  | RegExp
  | ArrayBuffer
  | DataView;

type JsonifyElements<T extends readonly unknown[]> = { [Index in keyof T]: JsonifyElement<T[Index]> };

type JsonifyElement<T> = unknown extends T ? T : T extends Absent ? null : Jsonify<T>;

type JsonifyMembers<T> = Flat<
  { [Name in keyof T as Name extends PresentNames<T> ? Name : never]: Jsonify<T[Name]> } & {
    [Name in keyof T as Name extends MissableNames<T> ? Name : never]?: Jsonify<Exclude<T[Name], Absent>>;
  }
>;

/** The names of members that JSON always has. */
type PresentNames<T> = {
  [Name in keyof T]-?: Name extends symbol
    ? never
    : unknown extends T[Name]
      ? Name
      : [Extract<T[Name], Absent>] extends [never]
        ? Name
        : never;
}[keyof T];

/** The names of members that JSON has for some of their values only. */
type MissableNames<T> = {
  [Name in keyof T]-?: Name extends symbol | PresentNames<T>
    ? never
    : [Exclude<T[Name], Absent>] extends [never]
      ? never
      : Name;
}[keyof T];

type Flat<T> = { [Name in keyof T]: T[Name] };
