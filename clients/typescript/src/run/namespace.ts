import { checkFunction } from "../errors/violations.ts";
import type { Claim } from "./claim.ts";
import type { Codec } from "./codec.ts";
import type { Jsonify } from "./jsonify.ts";
import { type ResolveFor, resolveFor } from "./resolution.ts";
import {
  type AnyRunOptions,
  type CodecRunOptions,
  checkNamespaceOptions,
  type JsonRunOptions,
  type RunOptions,
  type RunResult,
} from "./run-options.ts";
import { type SeenAllOptions, type SeenOptions, seen, seenAll } from "./seen.ts";

/** The options that the operations of a namespace share. Each may be set again for one operation. */
export type NamespaceDefaults = Pick<
  RunOptions,
  | "leaseMs"
  | "onInProgress"
  | "waitMs"
  | "timeoutMs"
  | "owner"
  | "onUnavailable"
  | "classifyError"
  | "onError"
  | "describeError"
  | "resolve"
  | "marksBegin"
>;

/** The options of a wrapped function: how to name its operation, and how to run it. */
export interface WrapOptions<Input> extends Omit<NamespaceDefaults, "resolve"> {
  /** Returns the operation's key, as `RunOptions.key` describes it. */
  readonly key: (input: Input) => string;
  /**
   * Returns the request that the key belongs to, as `RunOptions.fingerprint` describes it: often the whole input.
   * Default: none, and any input with the key gets the stored value.
   */
  readonly fingerprint?: ((input: Input) => unknown) | undefined;
  /** Finds out what became of an earlier attempt, as `RunOptions.resolve` describes it. Default: the namespace's. */
  readonly resolve?: ResolveFor<Input> | undefined;
  /** Returns when the key was made, as `RunOptions.keyCreatedAt` describes it. Default: the time in the key, if any. */
  readonly keyCreatedAt?: ((input: Input) => Date | undefined) | undefined;
}

/** {@link WrapOptions} with the codec that stores the function's value. */
export interface CodecWrapOptions<Input, T> extends WrapOptions<Input> {
  /** Stores the function's value, and restores it for duplicates. */
  readonly codec: Codec<T>;
}

/** {@link WrapOptions} of a function whose value is stored as JSON, by `jsonCodec`. */
export interface JsonWrapOptions<Input> extends WrapOptions<Input> {
  /** Left out. Default: `jsonCodec`. */
  readonly codec?: undefined;
}

/** A function that runs once per key of its input. */
export type Wrapped<Input, T> = (
  input: Input,
  options?: Pick<RunOptions, "signal" | "acceptAmbiguous">,
) => Promise<T>;

/** `Onceward.runDetailed`, for options with or without a codec. */
type RunAny = (options: AnyRunOptions, fn: (claim: Claim) => unknown) => Promise<RunResult<unknown>>;

type Unnamed<Options extends RunOptions> = Omit<Options, "namespace">;

/**
 * The operations of one namespace, made by `Onceward.namespace`: its name and the options of its runs are said once.
 *
 * ```ts
 * const charges = onceward.namespace("charges", { leaseMs: 60_000, onUnavailable: "throw" });
 *
 * const charge = charges.wrap(
 *   (order: Order, claim) => stripe.charges.create(order.card, { idempotencyKey: claim.deriveKey("stripe") }),
 *   { key: (order) => order.id, fingerprint: (order) => order },
 * );
 * await charge(order);
 * ```
 */
export class Namespace {
  /** Such as "charges". */
  readonly name: string;
  readonly #run: RunAny;
  readonly #defaults: NamespaceDefaults;

  /** @internal */
  constructor(run: RunAny, name: string, defaults: NamespaceDefaults) {
    checkNamespaceOptions({ ...defaults, namespace: name });
    this.name = name;
    this.#run = run;
    this.#defaults = defaults;
  }

  /** Does what `Onceward.run` does, in this namespace. @throws the errors of `Onceward.run`. */
  run<T>(options: Unnamed<CodecRunOptions<T>>, fn: (claim: Claim) => T | Promise<T>): Promise<T>;
  run<T>(options: Unnamed<JsonRunOptions>, fn: (claim: Claim) => T | Promise<T>): Promise<Jsonify<T>>;
  async run(options: Unnamed<AnyRunOptions>, fn: (claim: Claim) => unknown): Promise<unknown> {
    return (await this.#run(this.#complete(options), fn)).value;
  }

  /** Does what `Onceward.runDetailed` does, in this namespace. @throws the errors of `Onceward.run`. */
  runDetailed<T>(
    options: Unnamed<CodecRunOptions<T>>,
    fn: (claim: Claim) => T | Promise<T>,
  ): Promise<RunResult<T>>;
  runDetailed<T>(
    options: Unnamed<JsonRunOptions>,
    fn: (claim: Claim) => T | Promise<T>,
  ): Promise<RunResult<Jsonify<T>>>;
  async runDetailed(
    options: Unnamed<AnyRunOptions>,
    fn: (claim: Claim) => unknown,
  ): Promise<RunResult<unknown>> {
    return await this.#run(this.#complete(options), fn);
  }

  /** Does what `Onceward.seen` does, in this namespace. */
  async seen(key: string, options: Omit<SeenOptions, "namespace" | "key"> = {}): Promise<boolean> {
    return await seen(this.#run, this.#complete({ ...options, key }));
  }

  /** Does what `Onceward.seenAll` does, in this namespace. */
  async seenAll(
    keys: readonly string[],
    options: Omit<SeenAllOptions, "namespace" | "keys"> = {},
  ): Promise<boolean[]> {
    return await seenAll(this.#run, this.#complete({ ...options, keys }));
  }

  /**
   * Returns the function guarded by `run`: it is called once for each key that `key` returns for its input, and every
   * repeat gets the stored value. The function gets its input and the claim. An error of `key`, `fingerprint` or
   * `keyCreatedAt` rejects the call, and nothing runs.
   *
   * @throws InvalidRequestError for an invalid option. The wrapped function rejects with the errors of `Onceward.run`.
   */
  wrap<Input, T>(
    fn: (input: Input, claim: Claim) => T | Promise<T>,
    options: CodecWrapOptions<Input, T>,
  ): Wrapped<Input, T>;
  wrap<Input, T>(
    fn: (input: Input, claim: Claim) => T | Promise<T>,
    options: JsonWrapOptions<Input>,
  ): Wrapped<Input, Jsonify<T>>;
  wrap<Input>(
    fn: (input: Input, claim: Claim) => unknown,
    {
      key,
      fingerprint,
      keyCreatedAt,
      resolve,
      ...options
    }: CodecWrapOptions<Input, unknown> | JsonWrapOptions<Input>,
  ): Wrapped<Input, unknown> {
    checkFunction("fn", fn);
    checkFunction("key", key);
    for (const [name, fnOfInput] of Object.entries({ fingerprint, keyCreatedAt, resolve })) {
      if (fnOfInput !== undefined) checkFunction(name, fnOfInput);
    }
    checkNamespaceOptions({ ...options, namespace: this.name });
    return async (input, { signal, acceptAmbiguous } = {}) => {
      const named = {
        ...options,
        key: key(input),
        fingerprint: fingerprint?.(input),
        keyCreatedAt: keyCreatedAt?.(input),
        resolve: resolveFor(input, resolve),
        signal,
        acceptAmbiguous,
      };
      const { value } = await this.#run(this.#complete(named), (claim) => fn(input, claim));
      return value;
    };
  }

  /** Adds the namespace and its defaults. An option that is undefined does not hide a default. */
  #complete<Options extends object>(options: Options): Options & { readonly namespace: string } {
    const set = Object.entries(options).filter(([, value]) => value !== undefined);
    return { ...this.#defaults, ...(Object.fromEntries(set) as Options), namespace: this.name };
  }
}
