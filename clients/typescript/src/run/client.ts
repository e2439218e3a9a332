/// <reference lib="esnext.disposable" preserve="true" />

import { createClient } from "@connectrpc/connect";
import type { Api } from "../transport/batch-sender.ts";
import { Calls } from "./calls.ts";
import { OncewardError, type Violation } from "../errors/errors.ts";
import type { Observers } from "./events.ts";
import { IdempotencyService } from "../gen/onceward/v1/idempotency_pb.ts";
import type { Claim } from "./held-claim.ts";
import type { Jsonify } from "./jsonify.ts";
import { Observer, Warnings } from "./observer.ts";
import { runOnce } from "./run.ts";
import {
  type AnyRunOptions,
  type CodedRunOptions,
  checkDefaults,
  type ResolvedDefaults,
  type RunDefaults,
  type UncodedRunOptions,
} from "./run-options.ts";
import type { RunResult } from "./run-result.ts";
import type { Connection } from "../transport/transport-options.ts";
import { checkFunction, refusedField, throwIfAny } from "../errors/violations.ts";

/** Longer than most operations last. */
const DEFAULT_WAIT_MS = 30_000;
/** Long enough for a replica to be replaced, short enough for a caller who waits. */
const DEFAULT_TIMEOUT_MS = 15_000;

/** A timer's longest: JavaScript keeps its delay in 32 bits, and one that is longer ends at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** What holds for every run that does not say otherwise, and who is told of what runs do. */
export type ClientOptions = RunDefaults & Observers;

/** How a client closes. */
export interface CloseOptions {
  /**
   * How long functions that run may take to finish, in milliseconds. After it the connection is closed all the same: their
   * claims' signals abort, and their runs reject with a CompletionError (CLOSED), because nobody can be told what came of
   * them. Default: as long as they take.
   */
  readonly timeoutMs?: number | undefined;
}

/** A client of the service, to be shared by the whole process. Made by `createOnceward`. */
export class Onceward implements AsyncDisposable {
  /** The service's RPCs as they are, one each, with connect's options and errors. */
  readonly api: Api;
  /** The same calls, one attempt each, that travel in batches by themselves; `run` is made of them. */
  readonly calls: Calls;
  readonly #connection: Connection;
  readonly #defaults: ResolvedDefaults;
  readonly #observers: Observers;
  readonly #warnings = new Warnings();
  readonly #runs = new Set<Promise<unknown>>();
  #closed = false;

  /** @internal */
  constructor(connection: Connection, options: ClientOptions & { readonly owner: string }) {
    const { owner, waitMs = DEFAULT_WAIT_MS, timeoutMs = DEFAULT_TIMEOUT_MS, classifyError } = options;
    this.#connection = connection;
    this.#defaults = { owner, waitMs, timeoutMs, classifyError };
    this.#observers = options;
    this.api = createClient(IdempotencyService, connection.transport);
    this.calls = new Calls(this.api);
  }

  /**
   * Runs the function unless the operation was done before, and returns its value, now and on every repeat.
   *
   * - The value is what its stored form says, the first time too: as JSON, a Date comes back as its ISO text. Undefined
   *   stays undefined. Its type says so (`Jsonify`). Another form is a `codec`'s.
   * - What the function throws comes back unchanged, and the claim is released, so that the next delivery runs it again;
   *   a TerminalError, or what `classifyError` takes for one, is stored instead, and every repeat throws it.
   * - While somebody else is doing it, waits for the outcome, at most `waitMs`.
   *
   * @throws InProgressError, AmbiguousError, ResultUnavailableError: nothing ran now.
   * @throws CompletionError: the function ran, and its outcome could not be stored.
   * @throws OncewardError for everything else, of its reason's class: nothing ran.
   */
  run<T>(options: CodedRunOptions<T>, fn: (claim: Claim) => T | Promise<T>): Promise<T>;
  run<T>(options: UncodedRunOptions, fn: (claim: Claim) => T | Promise<T>): Promise<Jsonify<T>>;
  async run(options: AnyRunOptions, fn: (claim: Claim) => unknown): Promise<unknown> {
    return (await this.#run(options, fn)).value;
  }

  /** As `run`, and tells whether the value was replayed, which attempt made it, and until when it is remembered. */
  runDetailed<T>(options: CodedRunOptions<T>, fn: (claim: Claim) => T | Promise<T>): Promise<RunResult<T>>;
  runDetailed<T>(
    options: UncodedRunOptions,
    fn: (claim: Claim) => T | Promise<T>,
  ): Promise<RunResult<Jsonify<T>>>;
  async runDetailed(options: AnyRunOptions, fn: (claim: Claim) => unknown): Promise<RunResult<unknown>> {
    return await this.#run(options, fn);
  }

  async #run(options: AnyRunOptions, fn: (claim: Claim) => unknown): Promise<RunResult<unknown>> {
    checkFunction("fn", fn);
    if (this.#closed) throw new OncewardError("CLOSED", "The client is closed.");
    const observer = new Observer(this.#observers, this.#warnings, options.namespace);
    const running = observer.span("run", () => runOnce(this.calls, this.#defaults, options, observer, fn));
    this.#runs.add(running);
    try {
      return await running;
    } finally {
      this.#runs.delete(running);
    }
  }

  /**
   * Refuses new runs with CLOSED, ends those that wait for another holder or for the service with CLOSED at once (nothing
   * ran), lets functions that run finish, and closes the connection. May be called again, to wait less long.
   *
   * @throws InvalidRequestError for a timeout that can't be meant.
   */
  async close({ timeoutMs }: CloseOptions = {}): Promise<void> {
    if (
      timeoutMs !== undefined &&
      !(Number.isInteger(timeoutMs) && timeoutMs >= 0 && timeoutMs <= MAX_TIMER_MS)
    )
      throw refusedField("timeoutMs", `must be a whole number of milliseconds, 0-${MAX_TIMER_MS}`);
    this.#closed = true;
    this.calls.endWaits();
    await settledWithin(this.#runs, timeoutMs);
    this.calls.close();
    this.#connection.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Resolves once all have settled, or the time is over; undefined: however long that takes. */
async function settledWithin(
  promises: Iterable<Promise<unknown>>,
  timeoutMs: number | undefined,
): Promise<void> {
  const settled = Promise.allSettled(promises);
  if (timeoutMs === undefined) {
    await settled;
    return;
  }
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeUp = new Promise((resolve) => {
    timer = setTimeout(resolve, timeoutMs);
  });
  await Promise.race([settled, timeUp]);
  clearTimeout(timer);
}

/** @throws InvalidRequestError for an option that can't be meant. */
export function checkClientOptions(options: ClientOptions): void {
  const violations: Violation[] = [];
  checkDefaults(violations, options);
  throwIfAny(violations);
}
