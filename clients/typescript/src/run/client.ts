/// <reference lib="esnext.disposable" preserve="true" />

import type { Violation } from "../errors/errors.ts";
import { checkFunction, refusedField, throwIfAny } from "../errors/violations.ts";
import type { Connection } from "../transport/transport-options.ts";
import { type Api, type CloseApi, closable, createApi } from "../transport/unary-client.ts";
import { MAX_TIMER_MS } from "../wire/limits.ts";
import { Calls, closedError } from "./calls.ts";
import type { Claim } from "./claim.ts";
import { Observer, type ObserverOptions, Warnings } from "./events.ts";
import type { Jsonify } from "./jsonify.ts";
import { type KeyState, type LookupOptions, lookUp } from "./lookup.ts";
import { Namespace, type NamespaceDefaults } from "./namespace.ts";
import { runOnce } from "./run.ts";
import {
  type AnyRunOptions,
  type CodecRunOptions,
  checkDefaults,
  type JsonRunOptions,
  type ResolvedDefaults,
  type RunDefaults,
  type RunResult,
} from "./run-options.ts";
import { type SeenAllOptions, type SeenOptions, seen, seenAll } from "./seen.ts";

/** Longer than most operations last. */
const DEFAULT_WAIT_MS = 30_000;
/** Long enough for a replica to be replaced, short enough for a caller who waits. */
const DEFAULT_TIMEOUT_MS = 15_000;

/**
 * How long functions and releases may take to end once `close` has aborted the signals of claims: long enough for one call of
 * the service, and short beside the grace periods of the platforms that stop a process.
 */
const CLOSING_GRACE_MS = 1000;

/** The defaults of all runs, and the observers of their events. */
export type ClientOptions = RunDefaults & ObserverOptions & GuardOptions;

/** The switch of the guard. */
export interface GuardOptions {
  /**
   * `off-in-development`: every run calls its function without the service, on each delivery; `claim.guarded` is false,
   * an event (`unguarded`) says so, and creating the client emits a warning of the process (ONCEWARD_GUARD_OFF). Refused
   * while NODE_ENV is "production". Default: `on`.
   */
  readonly guard?: "on" | "off-in-development" | undefined;
}

/** Options of `Onceward.close`. */
export interface CloseOptions {
  /**
   * How long to wait for running functions to finish, in milliseconds. Then the signals of their claims abort with
   * CLOSED, and for a further second values that functions return are stored, and claims of runs that did not begin are released.
   * Then the connection is closed, and runs that end later reject with a CompletionError (CLOSED). Default: no limit.
   */
  readonly timeoutMs?: number | undefined;
}

/** A client of the service. Create one per process, with `createOnceward`. */
export class Onceward implements AsyncDisposable {
  /** The service's plain unary RPCs, with Connect's options and errors. Once the client has closed, also those in flight: CLOSED. */
  readonly api: Api;
  /** The same calls, gathered into batches automatically (not in `./web`), one attempt each. `run` uses them. */
  readonly calls: Calls;
  readonly #connection: Connection;
  readonly #defaults: ResolvedDefaults;
  readonly #observerOptions: ObserverOptions;
  readonly #warnings = new Warnings();
  readonly #runs = new Set<Promise<unknown>>();
  /** No new run begins. */
  #closed = false;
  readonly #closeApi: CloseApi;

  /** @internal */
  constructor(connection: Connection, options: ClientOptions & { readonly owner: string }) {
    const { owner, waitMs = DEFAULT_WAIT_MS, timeoutMs = DEFAULT_TIMEOUT_MS, guard = "on" } = options;
    const { classifyError, onError, describeError } = options;
    this.#connection = connection;
    this.#defaults = { owner, waitMs, timeoutMs, classifyError, onError, describeError, guard };
    this.#observerOptions = options;
    const api = createApi(connection.transport);
    [this.api, this.#closeApi] = closable(api);
    this.calls = new Calls(api, options.trace?.traceparent, connection.gathersCalls);
  }

  /**
   * Runs the function unless the operation was done before, and returns its value, now and on every repeat.
   *
   * - The value is the decoded stored form, the first time too: as JSON, a Date comes back as its ISO text. Undefined
   *   stays undefined. The type says so (`Jsonify`). A `codec` stores other forms.
   * - An error of the function is rethrown unchanged, and the claim is released, so that the next delivery runs the
   *   function again. A TerminalError, or an error that `classifyError` calls "terminal", is stored, and every repeat
   *   throws it. After an interruption (`onError`) or an OutcomeUnknownError, the claim is left to the namespace's policy.
   * - While another holder runs the operation, waits for the outcome, at most `waitMs`.
   *
   * @throws InProgressError, AmbiguousError, ResultUnavailableError: nothing ran now.
   * @throws CompletionError: the function ran, and its outcome could not be stored.
   * @throws InvalidRequestError for an invalid option, and for a run within the function of a run with the same key, which
   *   would wait for itself. Browsers and edge runtimes (`./web`) do not know this: there it waits for `waitMs`.
   * @throws OncewardError, of its reason's class, for any other failure: nothing ran.
   */
  run<T>(options: CodecRunOptions<T>, fn: (claim: Claim) => T | Promise<T>): Promise<T>;
  run<T>(options: JsonRunOptions, fn: (claim: Claim) => T | Promise<T>): Promise<Jsonify<T>>;
  async run(options: AnyRunOptions, fn: (claim: Claim) => unknown): Promise<unknown> {
    return (await this.#run(options, fn)).value;
  }

  /** Does what `run` does, and also returns whether the value was replayed, its attempt, and when the key expires. */
  runDetailed<T>(options: CodecRunOptions<T>, fn: (claim: Claim) => T | Promise<T>): Promise<RunResult<T>>;
  runDetailed<T>(
    options: JsonRunOptions,
    fn: (claim: Claim) => T | Promise<T>,
  ): Promise<RunResult<Jsonify<T>>>;
  async runDetailed(options: AnyRunOptions, fn: (claim: Claim) => unknown): Promise<RunResult<unknown>> {
    return await this.#run(options, fn);
  }

  async #run(options: AnyRunOptions, fn: (claim: Claim) => unknown): Promise<RunResult<unknown>> {
    checkFunction("fn", fn);
    if (this.#closed) throw closedError();
    const observer = new Observer(this.#observerOptions, this.#warnings, options.namespace);
    const running = observer.span("run", () => runOnce(this.calls, this.#defaults, options, observer, fn));
    this.#runs.add(running);
    try {
      return await running;
    } finally {
      this.#runs.delete(running);
    }
  }

  /**
   * Returns whether the key was completed before: false the first time, and true afterwards, for as long as the key is
   * remembered. At most once: the key is completed in the same call, so that after a false, the caller alone has to act, and
   * no one repeats what then fails. After an error it is unknown whether the key was completed: repeat with the same `claimId`,
   * which gets the first answer again.
   *
   * @throws the errors of `run` from before the function.
   */
  async seen(options: SeenOptions): Promise<boolean> {
    return await seen((run, fn) => this.#run(run, fn), options);
  }

  /**
   * Does what `seen` does for many keys, in few batches. The answers are in the order of the keys; of equal keys, the later ones
   * were seen. If one key's call fails, throws its error after all have ended: the others are completed, and their answers come again
   * with the same `claimId`.
   */
  async seenAll(options: SeenAllOptions): Promise<boolean[]> {
    return await seenAll((run, fn) => this.#run(run, fn), options);
  }

  /**
   * Returns what the service knows of a key, and changes nothing. The type of the value is not checked: the codec, or who
   * calls, knows it. While a key is in progress, another call may get another answer at once: to act on the answer, `run`.
   *
   * @throws InvalidRequestError; OncewardError if the service does not answer within `timeoutMs`, or refuses.
   */
  async lookup<T = unknown>(options: LookupOptions<T>): Promise<KeyState<T>> {
    if (this.#closed) throw closedError();
    return await lookUp(this.calls, options, options.timeoutMs ?? this.#defaults.timeoutMs);
  }

  /**
   * Returns the operations of one namespace, with defaults of their own, so that these are said once.
   *
   * @throws InvalidRequestError for an invalid name or default.
   */
  namespace(name: string, defaults: NamespaceDefaults = {}): Namespace {
    return new Namespace((options, fn) => this.#run(options, fn), name, defaults);
  }

  /**
   * Refuses new runs with CLOSED, ends at once with CLOSED the runs that wait for another holder or for the service
   * (their functions did not run), waits for running functions to finish, and closes the connection. May be called
   * again with a shorter timeout.
   *
   * @throws InvalidRequestError for an invalid timeout.
   */
  async close({ timeoutMs }: CloseOptions = {}): Promise<void> {
    if (
      timeoutMs !== undefined &&
      !(Number.isInteger(timeoutMs) && timeoutMs >= 0 && timeoutMs <= MAX_TIMER_MS)
    )
      throw refusedField("timeoutMs", `must be a whole number of milliseconds, 0-${MAX_TIMER_MS}`);
    this.#closed = true;
    this.calls.endWaits();
    if (timeoutMs === undefined) await this.#ended();
    else if (!(await endedWithin(this.#ended(), timeoutMs))) {
      this.calls.endFunctions();
      await endedWithin(this.#ended(), CLOSING_GRACE_MS);
    }
    this.calls.close();
    this.#closeApi(closedError());
    this.#connection.close();
  }

  /** Resolves once no run is left, nor work that a run left behind. */
  async #ended(): Promise<void> {
    await Promise.allSettled(this.#runs);
    await Promise.allSettled(this.calls.background);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Resolves once the work has ended, as true, or after `timeoutMs`, as false. Rejects as the work does until then. */
export async function endedWithin(work: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeUp = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), timeoutMs);
  });
  try {
    return await Promise.race([work.then(() => true), timeUp]);
  } finally {
    clearTimeout(timer);
  }
}

/** Checks a client's options. @throws InvalidRequestError. */
export function checkClientOptions(options: ClientOptions): void {
  const violations: Violation[] = [];
  checkDefaults(violations, options);
  throwIfAny(violations);
}

/** The part of a client that adapters use. The in-memory Onceward of `../testing` has it, too. */
export type Runner = Pick<Onceward, "run" | "runDetailed">;
