import { hostname } from "node:os";
import { createClient } from "@connectrpc/connect";
import type { Api } from "./batch-sender.ts";
import { Calls } from "./calls.ts";
import { type Connection, type ConnectionOptions, connect } from "./connection.ts";
import { OncewardError, type Violation } from "./errors.ts";
import { IdempotencyService } from "./gen/onceward/v1/idempotency_pb.ts";
import type { Claim } from "./held-claim.ts";
import { MAX_OWNER_BYTES } from "./limits.ts";
import { type RunDefaults, type RunResult, runOnce } from "./run.ts";
import { checkPatience, type RunOptions } from "./run-options.ts";
import { throwIfAny, truncateUtf8 } from "./violations.ts";

/** Longer than most operations last. */
const DEFAULT_WAIT_MS = 30_000;
/** Long enough for a replica to be replaced, short enough for a caller who waits. */
const DEFAULT_TIMEOUT_MS = 15_000;

/** Where the service is, who calls, and what holds for every run that does not say otherwise. */
export type OncewardOptions = ConnectionOptions & Pick<RunOptions, "owner" | "waitMs" | "timeoutMs">;

/**
 * A client of the service: one connection, to be shared by the whole process.
 *
 * @throws OncewardError INVALID_REQUEST for an option that can't be meant. The connection is opened by the first call.
 */
export function createOnceward(options: OncewardOptions): Onceward {
  const violations: Violation[] = [];
  checkPatience(violations, options);
  throwIfAny(violations);
  const {
    waitMs = DEFAULT_WAIT_MS,
    timeoutMs = DEFAULT_TIMEOUT_MS,
    owner = truncateUtf8(`${hostname()}/${process.pid}`, MAX_OWNER_BYTES),
  } = options;
  return new Onceward(connect(options), { waitMs, timeoutMs, owner });
}

/** See {@link createOnceward}. */
export class Onceward implements AsyncDisposable {
  /** The service's RPCs as they are, one each, with connect's options and errors. */
  readonly api: Api;
  /** The same calls, one attempt each, that travel in batches by themselves; `run` is made of them. */
  readonly calls: Calls;
  readonly #connection: Connection;
  readonly #defaults: RunDefaults;
  readonly #runs = new Set<Promise<unknown>>();
  #closed: Promise<void> | undefined;

  /** @internal */
  constructor(connection: Connection, defaults: RunDefaults) {
    this.#connection = connection;
    this.#defaults = defaults;
    this.api = createClient(IdempotencyService, connection.transport);
    this.calls = new Calls(this.api);
  }

  /**
   * Runs the function unless the operation was done before, and returns its value, now and on every repeat.
   *
   * - The value is what its JSON says, the first time too: a Date comes back as its ISO text. Undefined stays undefined.
   * - What the function throws comes back unchanged, and the claim is released, so that the next delivery runs it again;
   *   a TerminalError is stored instead, and every repeat throws it.
   * - While somebody else is doing it, waits for the outcome, at most `waitMs`.
   *
   * @throws InProgressError, AmbiguousError, ResultUnavailableError: nothing ran now.
   * @throws CompletionError: the function ran, and its outcome could not be stored.
   * @throws OncewardError for everything else: nothing ran.
   */
  async run<T>(options: RunOptions, fn: (claim: Claim) => T | Promise<T>): Promise<T> {
    return (await this.runDetailed(options, fn)).value;
  }

  /** As `run`, and tells whether the value was replayed, which attempt made it, and until when it is remembered. */
  async runDetailed<T>(options: RunOptions, fn: (claim: Claim) => T | Promise<T>): Promise<RunResult<T>> {
    if (this.#closed !== undefined) throw new OncewardError("CLOSED", "The client is closed.");
    const running = runOnce(this.calls, this.#defaults, options, fn);
    this.#runs.add(running);
    try {
      return await running;
    } finally {
      this.#runs.delete(running);
    }
  }

  /** Refuses new runs with CLOSED, lets those under way finish, and closes the connection. May be called again. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    await Promise.allSettled(this.#runs);
    this.calls.close();
    this.#connection.close();
  }
}
