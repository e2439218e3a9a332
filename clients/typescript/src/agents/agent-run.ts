import { checkFunction, refusedField } from "../errors/violations.ts";
import type { Record as RecordMessage } from "../gen/onceward/v1/record_pb.ts";
import { fingerprintWithFiles } from "../keys/fingerprint.ts";
import { keyTime } from "../keys/key-time.ts";
import type { Claim } from "../run/claim.ts";
import type { Jsonify } from "../run/jsonify.ts";
import { resolveFor, unknown } from "../run/resolution.ts";
import { retrying } from "../run/retry.ts";
import { base64Url } from "../wire/bytes.ts";
import { KEY_ARGUMENT_LABEL, withArgument } from "./arguments.ts";
import { Attempt, orBlocked } from "./attempt.ts";
import { ToolBlockedError } from "./blocked.ts";
import { type AgentRunner, type AgentRunOptions, checkCall, type ToolCall } from "./options.ts";
import { MAX_CALLS_PER_STEP, type Slot, StepSlots } from "./slots.ts";

/** A run remembers this many steps and this many calls with unknown outcomes; the service knows the others. */
const MAX_REMEMBERED = 1024;
/** As `Onceward.run` retries calls. */
const DEFAULT_TIMEOUT_MS = 15_000;

/** The key of a call, and when it was created; undefined: unknown, or in the key. */
interface OperationKey {
  readonly key: string;
  readonly createdAt: Date | undefined;
  /** Whether its attempt ended in this process with an unknown outcome, so that no one runs it. */
  readonly hasEnded?: boolean;
}

/**
 * One run of an agent, whose tool calls happen once, however often the model, its framework or a restarted process repeats
 * them. Made by `createAgentRun`.
 */
export class AgentRun {
  readonly #onceward: AgentRunner;
  readonly #options: AgentRunOptions;
  readonly #steps = new Map<string, StepSlots>();
  /** Calls with unknown outcomes: a later step that repeats one gets its key, and the key's time. */
  readonly #unknown = new Map<string, OperationKey>();
  /** The keys of the calls that this process runs. */
  readonly #running = new Set<string>();
  /** Whether a call with an unknown outcome remains so until a person decides. */
  readonly #holds: boolean;
  /** The time of the keys that are made of the run. */
  readonly #createdAt: Date | undefined;

  /** @internal */
  constructor(onceward: AgentRunner, options: AgentRunOptions) {
    this.#onceward = onceward;
    this.#options = options;
    this.#holds = options.onCrash !== "policy" && options.resolve === undefined;
    this.#createdAt = options.runCreatedAt ?? keyTime(options.runId);
  }

  /**
   * Runs a tool unless this call of it was done before, and returns its value, now and on every repeat, as JSON. The tool gets the
   * claim, and the call's input with the key in `keyArgument`.
   *
   * - An error of the tool is rethrown, and the next attempt runs the tool again; a TerminalError is stored.
   * - A value that has no JSON form or is too large is returned once. Repeats are blocked (`RESULT_UNAVAILABLE`).
   *
   * @throws ToolBlockedError if the tool did not run, with a text for the model; OncewardError if the program or its
   *   credential is wrong.
   */
  async call<T>(call: ToolCall, fn: (claim: Claim, input: unknown) => T | Promise<T>): Promise<Jsonify<T>> {
    checkCall(call);
    checkFunction("fn", fn);
    const { keyArgument } = call;
    const inputWith = (value: unknown) =>
      keyArgument === undefined ? call.input : withArgument(call.input, keyArgument, value);
    const fingerprint = await fingerprintWithFiles(inputWith(null) ?? null);
    const operation = JSON.stringify([call.tool, base64Url(fingerprint)]);
    const { key, keyCreatedAt } = call;
    const earlier = this.#unknown.get(operation);
    const known = key === undefined ? earlier : { key, createdAt: keyCreatedAt };
    const slot = known === undefined ? await this.#take(call, base64Url(fingerprint)) : undefined;
    const named = known ?? { key: `${slot?.key}`, createdAt: keyCreatedAt ?? this.#createdAt };
    const attempt = new Attempt(call, named.key, fingerprint);
    attempt.hasEnded = earlier?.hasEnded === true && earlier.key === named.key;
    const mayHaveBegun = earlier !== undefined || this.#running.has(named.key);
    if (!mayHaveBegun) this.#running.add(named.key);
    const tool = (claim: Claim) => fn(claim, inputWith(claim.deriveKey(KEY_ARGUMENT_LABEL)));
    try {
      const value = await this.#run(attempt, named.createdAt, mayHaveBegun, tool);
      if (!attempt.isUnknown) this.#unknown.delete(operation);
      return value as Jsonify<T>;
    } finally {
      if (!mayHaveBegun) this.#running.delete(named.key);
      if (slot !== undefined) slot.running--;
      if (attempt.isUnknown)
        remember(this.#unknown, operation, { ...named, hasEnded: attempt.hasEnded && this.#holds });
    }
  }

  async #take(call: ToolCall, fingerprint: string): Promise<Slot> {
    const { tool, step } = call;
    const parts = [this.#options.runId, step, tool];
    const name = JSON.stringify(parts);
    const slots = this.#steps.get(name) ?? new StepSlots((key) => this.#lookUp(key), parts);
    remember(this.#steps, name, slots);
    const slot = await orBlocked({ tool, key: name }, slots.take(fingerprint, call));
    if (slot === "changed") throw new ToolBlockedError("ARGUMENTS_CHANGED", { tool, key: name });
    if (slot === "full")
      throw refusedField("step", `must have at most ${MAX_CALLS_PER_STEP} calls of the tool ${tool}`);
    return slot;
  }

  async #run(
    attempt: Attempt,
    keyCreatedAt: Date | undefined,
    mayHaveBegun: boolean,
    fn: (claim: Claim) => unknown,
  ): Promise<unknown> {
    const { runId: _, runCreatedAt: __, onCrash = "hold", resolve, ...shared } = this.#options;
    const { call, key, fingerprint } = attempt;
    const { signal } = call;
    const holds = onCrash === "hold";
    const options = {
      ...shared,
      key,
      keyCreatedAt,
      fingerprint,
      signal,
      ...(mayHaveBegun && { onUnavailable: "throw" as const }),
      ...(attempt.hasEnded && { waitMs: 0 }),
      ...(holds && { marksBegin: true }),
      // With it, the run marks the begin of the tool.
      resolve: resolveFor(call, resolve) ?? (holds ? unknown : undefined),
    };
    return await attempt.settled(this.#onceward.run(options, attempt.begin(fn)));
  }

  async #lookUp(key: string, signal?: AbortSignal): Promise<RecordMessage | undefined> {
    const { namespace, timeoutMs = DEFAULT_TIMEOUT_MS } = this.#options;
    const { calls } = this.#onceward;
    const lookup = () => calls.orEnd(calls.lookup({ namespace, key }), signal);
    return (await retrying(lookup, performance.now() + timeoutMs, calls.closing, signal)).record;
  }
}

/** Adds to a map of bounded size; the entry that was added first makes room. */
function remember<Value>(map: Map<string, Value>, name: string, value: Value): void {
  map.delete(name);
  map.set(name, value);
  if (map.size <= MAX_REMEMBERED) return;
  for (const first of map.keys()) {
    map.delete(first);
    return;
  }
}
