import { type Codec, fingerprintOf, joinKey, type Onceward, OncewardError } from "@onceward/client";
import {
  type AgentRun,
  type AgentRunner,
  type AgentRunOptions,
  createAgentRun,
  KEY_ARGUMENT_LABEL,
  NoEffectError,
  OutcomeUnknownError,
  ToolBlockedError,
  type ToolCall,
  unknown,
  withArgument,
} from "@onceward/client/agents";
import { ExactNumber, fingerprintable } from "./exact-json.ts";
import { findOut } from "./find-out.ts";
import { type ProxyPolicy, type ToolPolicy, valueAt } from "./policy.ts";

/** Runs that the proxy remembers at once; a forgotten one is found again at the service. */
const MAX_RUNS = 256;

/** The parameters of a `tools/call` request. */
export interface CallParams {
  readonly name: string;
  readonly arguments?: Readonly<Record<string, unknown>> | undefined;
  readonly _meta?: unknown;
  /** Asks for a task instead of a result. */
  readonly task?: unknown;
}

/** The result of a tool, as MCP has it. */
export type ToolResult = Readonly<Record<string, unknown>>;

/**
 * Returns how a call ends whose tool answers with an error: a provider's time-out, too, is such an answer, so that it says nothing
 * about the effect unless the policy says so.
 */
export function toolError({ onToolError }: ToolPolicy): Error {
  const why = "The tool answered with an error.";
  return onToolError === "release" ? new NoEffectError(why) : new OutcomeUnknownError(why);
}

/** The server, as one call reaches it. */
export interface Upstream {
  /**
   * Makes the call.
   *
   * @throws OutcomeUnknownError if the call may have had its effect; NoEffectError if not, as when the server is unreachable.
   */
  send(params: CallParams): Promise<ToolResult>;
  /** Calls a tool that only reads. @throws Error without a result. */
  read(params: CallParams): Promise<ToolResult>;
}

/** A call, and how to find out whether an earlier attempt of it happened. */
interface ResolvableCall extends ToolCall {
  readonly find?: AgentRunOptions["resolve"] | undefined;
}

/** The part of a client that the proxy uses. */
export type McpRunner = Pick<Onceward, "runDetailed" | "calls">;

/** Stores results as the host gets them, also with numbers that the default codec refuses. */
const RESULT: Codec<unknown> = {
  encode: (result) => ({
    payload: Buffer.from(JSON.stringify(result)),
    contentType: "application/json",
  }),
  decode: ({ payload }) => JSON.parse(Buffer.from(payload).toString()),
};

/** More of what the client says of a refused call is not written to standard error. */
const MAX_WARNING_CHARACTERS = 500;

/** Guards the calls of the tools that a policy names. */
export class Guard {
  readonly #onceward: AgentRunner;
  /** By a stored result: when its call was done. */
  readonly #doneAt = new WeakMap<object, Date>();
  readonly #policy: ProxyPolicy;
  readonly #runs = new Map<string, AgentRun>();
  readonly #warn: (text: string) => void;
  readonly #warned = new Set<string>();

  /** @param warn writes a line for people. */
  constructor(onceward: McpRunner, policy: ProxyPolicy, warn: (text: string) => void) {
    const run = async (...[options, fn]: Parameters<McpRunner["runDetailed"]>) => {
      const { value, replayed, completedAt } = await onceward.runDetailed({ ...options, codec: RESULT }, fn);
      if (replayed) this.#doneAt.set(Object(value), completedAt);
      return value;
    };
    this.#onceward = { calls: onceward.calls, run: run as AgentRunner["run"] };
    this.#policy = policy;
    this.#warn = warn;
  }

  /** Returns a tool's policy; undefined if its calls pass through. */
  policyOf(tool: string): ToolPolicy | undefined {
    return this.#policy.get(tool);
  }

  /**
   * Returns the result of a call: the upstream server's, now or before, or an error result with a text for the model.
   *
   * An error result that is not stored is returned all the same, once.
   *
   * @throws `send`'s other errors, and the reason of the signal.
   */
  async call(
    params: CallParams,
    policy: ToolPolicy,
    signal: AbortSignal,
    upstream: Upstream,
  ): Promise<ToolResult> {
    const { keyArgument, resolve } = policy;
    const argumentsWith = (key: unknown): CallParams["arguments"] =>
      keyArgument === undefined ? params.arguments : { ...withArgument(params.arguments, keyArgument, key) };
    let ran = false;
    let failed: ToolResult | undefined;
    try {
      const named = nameOf(params, policy);
      if (typeof named === "string") return errorResult("INVALID_REQUEST", named);
      const { run: runId, ...call } = named;
      const input = fingerprintOf(fingerprintable(argumentsWith(null) ?? {}), { omit: policy.ignore });
      const find: AgentRunOptions["resolve"] =
        resolve &&
        ((claim) => {
          const args = argumentsWith(claim.deriveKey(KEY_ARGUMENT_LABEL));
          return findOut(resolve, args, policy.timeoutMs - claim.msSinceEffectMayHaveBegun, upstream.read);
        });
      const resolvable: ResolvableCall = { ...call, tool: params.name, input, signal, find };
      const run = this.#runOf(policy, runId);
      const result = (await run.call(resolvable, async (claim) => {
        await claim.begin();
        if (signal.aborted) throw new NoEffectError("The call was cancelled while the claim was granted.");
        ran = true;
        const sent = { ...params, arguments: argumentsWith(claim.deriveKey(KEY_ARGUMENT_LABEL)) };
        const answer = await upstream.send(sent);
        const own = answer._meta === undefined ? answer : marked(answer, NO_MARKS);
        const result = claim.guarded ? own : marked(own, { "onceward/unguarded": true }, UNGUARDED);
        if (result.isError !== true || policy.onToolError === "store") return result;
        failed = result;
        throw toolError(policy);
      })) as ToolResult;
      if (ran) return result;
      const marks = {
        "onceward/replayed": true,
        "onceward/completedAt": this.#doneAt.get(result)?.toISOString(),
      };
      return marked(result, marks, policy.saysReplayed && REPLAYED);
    } catch (error) {
      if (failed !== undefined) return failed;
      this.#explain(error);
      if (error instanceof ToolBlockedError) return errorResult(error.reason, error.message);
      if (error instanceof NoEffectError)
        return errorResult(
          "NOT_SENT",
          `NOT RUN. ${error.message} This says nothing about earlier calls for this purpose. Tell the user both, or call the tool again later.`,
        );
      if (error instanceof OncewardError)
        return errorResult(error.reason, `NOT RUN. Onceward refused the call: ${error.message}`);
      throw error;
    }
  }

  /** Says once for each reason why Onceward does not guard calls, such as a wrong address. */
  #explain(error: unknown): void {
    const refusal = error instanceof ToolBlockedError ? error.reason === "UNAVAILABLE" && error.cause : error;
    if (!(refusal instanceof OncewardError) || this.#warned.has(refusal.reason)) return;
    this.#warned.add(refusal.reason);
    this.#warn(`onceward: a call did not run: ${refusal.message.slice(0, MAX_WARNING_CHARACTERS)}\n`);
  }

  #runOf(
    { namespace, onCrash, onUnavailable, marksBegin, leaseMs, resolve }: ToolPolicy,
    runId: string,
  ): AgentRun {
    const options = { namespace, onCrash, onUnavailable, marksBegin, leaseMs, runId };
    const name = JSON.stringify([options, resolve !== undefined]);
    const run =
      this.#runs.get(name) ??
      createAgentRun(this.#onceward, {
        ...options,
        ...(resolve && { resolve: (claim, call: ResolvableCall) => call.find?.(claim, call) ?? unknown() }),
      });
    this.#runs.delete(name);
    this.#runs.set(name, run);
    const [oldest] = this.#runs.keys();
    if (this.#runs.size > MAX_RUNS && oldest !== undefined) this.#runs.delete(oldest);
    return run;
  }
}

/** What names a call, and when its operation was created. */
interface NamedCall {
  readonly run: string;
  readonly step: string | number;
  readonly key?: string;
  readonly keyCreatedAt?: Date;
}

/** Returns the names of a call, or a text about what is missing. */
function nameOf(
  { name, arguments: args = {}, _meta: meta = {} }: CallParams,
  policy: ToolPolicy,
): NamedCall | string {
  const { name: by, createdAt } = policy;
  const time = createdAt === undefined ? undefined : timeAt(by.by === "run" ? meta : args, createdAt);
  if (createdAt !== undefined && time === undefined)
    return `NOT RUN. The tool ${name} needs the time of the operation at ${createdAt}, such as 2026-01-31T09:00:00Z.`;
  const timed = time && { keyCreatedAt: time };
  if (by.by === "run") {
    const run = textAt(meta, by.id);
    const step = textAt(meta, by.step);
    if (run !== undefined && step !== undefined) return { run, step, ...timed };
    return `NOT RUN. The tool ${name} needs the run and the step in _meta, at ${by.id} and ${by.step}.`;
  }
  const values = by.pointers.map((pointer) => textAt(args, pointer));
  const missing = by.pointers.find((_, index) => values[index] === undefined);
  if (missing === undefined)
    return { run: "mcp-proxy", step: 0, key: joinKey(name, ...(values as string[])), ...timed };
  return `NOT RUN. The tool ${name} needs the argument ${missing}, a text or a number, which names the operation.`;
}

/** A time with its offset (RFC 3339). Without one it would be read by the clock of this machine. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

function timeAt(value: unknown, pointer: string): Date | undefined {
  const text = textAt(value, pointer);
  if (text === undefined || !TIME.test(text)) return undefined;
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? undefined : time;
}

function textAt(value: unknown, pointer: string): string | undefined {
  const at = valueAt(value, pointer);
  if (typeof at === "string" && at !== "") return at;
  if (at instanceof ExactNumber) return at.source;
  return typeof at === "number" || typeof at === "boolean" ? String(at) : undefined;
}

/** The members of `_meta` that only the proxy sets, as a server's result has them. */
const NO_MARKS = {
  "onceward/replayed": undefined,
  "onceward/completedAt": undefined,
  "onceward/unguarded": undefined,
  "onceward/reason": undefined,
  "onceward/guarded": undefined,
};
const REPLAYED = "onceward: This call was done before. This is its result, and nothing ran now.";
const UNGUARDED =
  "onceward: This call ran without the protection against repetitions, which is not available now: do not repeat it.";

/** Returns a result with members of `_meta`, and a text for the model. */
function marked(result: ToolResult, marks: object, text?: string | false): ToolResult {
  const content = Array.isArray(result.content) ? result.content : [];
  const said = text && { content: [...content, { type: "text", text }] };
  return { ...result, ...said, _meta: { ...Object(result._meta), ...marks } };
}

/** Returns the result of a call that did not run. Hosts show the text of such a result to the model. */
export function errorResult(reason: string, text: string): ToolResult {
  return { content: [{ type: "text", text }], isError: true, _meta: { "onceward/reason": reason } };
}
