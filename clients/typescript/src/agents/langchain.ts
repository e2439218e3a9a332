import { checkFunction, refusedField } from "../errors/violations.ts";
import type { AgentRun } from "./agent-run.ts";
import { hideArgument } from "./arguments.ts";
import { ToolBlockedError } from "./blocked.ts";
import { signalOf } from "./claim-of.ts";
import { checkToolNames } from "./options.ts";

/** A tool of `@langchain/core`, as `tool()` or a class makes it. */
export interface LangChainTool {
  readonly name: string;
  invoke(input: never, config?: never): unknown;
}

/** What this adapter reads of a tool's RunnableConfig. */
export interface LangChainConfig {
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
  readonly configurable?: Readonly<Record<string, unknown>> | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Set if the tool is invoked with a ToolCall. */
  readonly toolCall?: { readonly id?: string | undefined } | undefined;
  /** The graph's state, which a ToolNode of LangGraph 1 adds. */
  readonly state?: unknown;
}

/** How LangChain's callbacks learn of what a tool yields. */
interface RunManager {
  handleToolEvent?(chunk: unknown): Promise<void> | void;
}

type Call = (
  input: unknown,
  runManager: RunManager | undefined,
  config: LangChainConfig | undefined,
) => unknown;

/** How the tools' calls are named. */
export interface LangChainOptions {
  /**
   * Returns the step of a call from its RunnableConfig. Default: `metadata.langgraph_step`, which LangGraph counts within a
   * thread, and continues when the thread is resumed from a checkpoint. Needed outside LangGraph, and in a subgraph, whose
   * steps begin again each time it is called.
   */
  readonly step?: ((config: LangChainConfig) => string | number) | undefined;
  /** By the tool's name: returns the operation's own key, see `ToolCall.key`. Default: none. */
  readonly keys?: Readonly<Record<string, (input: never) => string>> | undefined;
  /**
   * By the tool's name: its own argument for an idempotency key, see `ToolCall.keyArgument`. The model does not see it in JSON Schema,
   * nor at the top of a Zod object without refinements; leave it out of other schemas. Default: none.
   */
  readonly keyArguments?: Readonly<Record<string, string>> | undefined;
}

/**
 * Returns tools of LangChain (`@langchain/core` 0.3 and 1) that run once per call, for an agent, a ToolNode or `invoke`. The
 * tools themselves are not changed.
 *
 * The text of a blocked call is the tool's output, because a ToolNode would ask the model to fix the mistake of a tool that
 * throws. A ToolNode does so with the errors of a wrong program or credential, too, unless its `handleToolErrors` is false.
 *
 * A tool returns text or another JSON value. A ToolMessage or a Command has no JSON form: it is returned once, and duplicates are
 * blocked (`RESULT_UNAVAILABLE`). A tool that interrupts the graph (`interrupt`) runs again when the thread is resumed. The
 * tool gets `claim.signal` as the `signal` of its config, and the claim by `claimOf(config)`.
 *
 * @param run the run of the calls; or a function that returns it, such as `threadRuns` makes for LangGraph.
 * @throws as `aiSdkTools`.
 */
export function langChainTools<Tool extends LangChainTool>(
  run: AgentRun | ((config: LangChainConfig) => AgentRun),
  tools: readonly Tool[],
  { step = langGraphStep, keys = {}, keyArguments = {} }: LangChainOptions = {},
): Tool[] {
  checkFunction("step", step);
  const names = tools.map(({ name }) => name);
  checkToolNames(names, { keys, keyArguments });
  const runOf = typeof run === "function" ? run : () => run;
  return tools.map((tool) => {
    const original = Reflect.get(tool as object, "_call") as Call;
    const keyOf = Object.hasOwn(keys, tool.name)
      ? (keys[tool.name] as (input: unknown) => string)
      : undefined;
    if (keyOf !== undefined) checkFunction(`keys.${tool.name}`, keyOf);
    const keyArgument = Object.hasOwn(keyArguments, tool.name) ? keyArguments[tool.name] : undefined;
    const guarded: Call = async (input, runManager, config = {}) => {
      const callId = config.toolCall?.id;
      const call = {
        tool: tool.name,
        step: keyOf === undefined ? step(config) : 0,
        input,
        key: keyOf && (keyOf(input) ?? ""),
        keyArgument,
        callId,
        response: responseOf(config.state, callId),
        signal: config.signal,
      };
      try {
        const output: unknown = await runOf(config).call(call, async (claim, keyed) => {
          const given = { ...config, signal: signalOf(claim) };
          return storable(await returned(await original.call(tool, keyed, runManager, given), runManager));
        });
        return output instanceof DirectOutput ? output.value : output;
      } catch (error) {
        if (!(error instanceof ToolBlockedError)) throw error;
        const hasArtifact = Reflect.get(tool as object, "responseFormat") === "content_and_artifact";
        return hasArtifact ? [error.message, undefined] : error.message;
      }
    };
    // An object that inherits from the tool, so that it is still an instance of the tool's class.
    const own = (value: unknown) => ({ value, writable: true, configurable: true });
    const schema = keyArgument !== undefined && {
      schema: own(
        hideArgument(Reflect.get(tool as object, "schema"), keyArgument, `keyArguments.${tool.name}`),
      ),
    };
    return Object.create(tool, { _call: own(guarded), ...schema });
  });
}

function langGraphStep({ metadata = {} }: LangChainConfig): number {
  const { langgraph_step: step, langgraph_checkpoint_ns: namespace } = metadata;
  if (typeof step !== "number")
    throw refusedField(
      "step",
      "must be an option outside LangGraph: the config has no metadata.langgraph_step",
    );
  if (typeof namespace === "string" && namespace.includes("|"))
    throw refusedField(
      "step",
      "must be an option in a subgraph, whose steps begin again each time it is called",
    );
  return step;
}

/** Returns the id of the message by which the model made a call; undefined if the state does not have it. */
function responseOf(state: unknown, callId: string | undefined): string | undefined {
  const { messages = state }: { messages?: unknown } = Object(state);
  if (callId === undefined || !Array.isArray(messages)) return undefined;
  const response = messages.findLast(
    (message) =>
      Array.isArray(message?.tool_calls) &&
      message.tool_calls.some((call: { id?: unknown } | undefined) => call?.id === callId),
  );
  return typeof response?.id === "string" ? response.id : undefined;
}

/** Returns the last value of a tool, passing on what it yields before, as LangChain does. */
async function returned(output: unknown, runManager: RunManager | undefined): Promise<unknown> {
  if (typeof output !== "object" || output === null || !(Symbol.asyncIterator in output)) return output;
  const values = (output as AsyncIterable<unknown>)[Symbol.asyncIterator]();
  for (;;) {
    const { done, value } = await values.next();
    if (done === true) return value;
    await runManager?.handleToolEvent?.(value);
  }
}

/** An output that is an instruction to the graph: a ToolMessage or a Command. Its copy as JSON would be shown to the model. */
class DirectOutput {
  readonly value: unknown;

  constructor(value: unknown) {
    this.value = value;
  }

  toJSON(): never {
    throw new TypeError("A ToolMessage or a Command has no JSON form.");
  }
}

function storable(output: unknown): unknown {
  return Object(output).lc_direct_tool_output === true ? new DirectOutput(output) : output;
}
