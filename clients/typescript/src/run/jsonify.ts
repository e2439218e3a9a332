/**
 * The type of a value after it was stored as JSON and read again, which `run` returns without a codec: a Date is a
 * string, a member that may be undefined may be missing, methods are gone, a Map is an empty object.
 *
 * A value without a JSON form, a BigInt, is `never`. NaN becomes null, but its type is that of other numbers.
 */
export type Jsonify<T> = unknown extends T
  ? T
  : T extends JsonValue | NoValue
    ? T
    : T extends bigint | Absent
      ? never
      : T extends { toJSON(...args: never[]): infer Json }
        ? Jsonify<Json>
        : T extends TypedArray
          ? Record<string, number>
          : T extends WithoutMembers
            ? Record<string, never>
            : T extends readonly unknown[]
              ? JsonifyElements<T>
              : JsonifyMembers<T>;

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

type TypedArray =
  | Int8Array
  | Uint8Array
  | Uint8ClampedArray
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | Float32Array
  | Float64Array;

/**
 * Objects whose content is not in members. Not Error: to the compiler, any interface with `name` and `message` is an
 * Error.
 */
type WithoutMembers =
  | ReadonlyMap<unknown, unknown>
  | ReadonlySet<unknown>
  | WeakMap<WeakKey, unknown>
  | WeakSet<WeakKey>
  | Promise<unknown>
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
