import { checkFunction, refusedField } from "../errors/violations.ts";
import type { AgentRun } from "./agent-run.ts";
import { ToolBlockedError } from "./blocked.ts";
import { signalOf } from "./claim-of.ts";

/** A tool of `@langchain/core`, as `tool()` or a class makes it. */
export interface LangChainTool {
  readonly name: string;
  invoke(input: never, config?: never): unknown;
}

/** What this adapter reads of a tool's RunnableConfig. */
export interface LangChainConfig {
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Set if the tool is invoked with a ToolCall. */
  readonly toolCall?: { readonly id?: string | undefined } | undefined;
}

type Call = (input: unknown, runManager: unknown, config: LangChainConfig | undefined) => unknown;

/** How the tools' calls are named. */
export interface LangChainOptions {
  /**
   * Returns the step of a call from its RunnableConfig. Default: `metadata.langgraph_step`, which LangGraph sets, and keeps
   * when a thread is resumed from a checkpoint.
   */
  readonly step?: ((config: LangChainConfig) => string | number) | undefined;
  /** By the tool's name: returns the operation's own key, see `ToolCall.key`. Default: none. */
  readonly keys?: Readonly<Record<string, (input: never) => string>> | undefined;
}

/**
 * Returns tools of LangChain (`@langchain/core` 0.3 and 1) that run once per call, for an agent, a ToolNode or `invoke`. The
 * tools themselves are not changed.
 *
 * The text of a blocked call is the tool's output, because a ToolNode would ask the model to fix the mistake of a tool that
 * throws. A tool returns text or another JSON value; a ToolMessage or a Command has no JSON form of its own. The tool gets
 * `claim.signal` as the `signal` of its config, and the claim by `claimOf(config)`.
 */
export function langChainTools<Tool extends LangChainTool>(
  run: AgentRun,
  tools: readonly Tool[],
  { step = langGraphStep, keys = {} }: LangChainOptions = {},
): Tool[] {
  checkFunction("step", step);
  return tools.map((tool) => {
    const original = Reflect.get(tool as object, "_call") as Call;
    const keyOf = Object.hasOwn(keys, tool.name)
      ? (keys[tool.name] as (input: unknown) => string)
      : undefined;
    const guarded: Call = async (input, runManager, config = {}) => {
      const call = {
        tool: tool.name,
        step: keyOf === undefined ? step(config) : 0,
        input,
        key: keyOf?.(input),
        callId: config.toolCall?.id,
        signal: config.signal,
      };
      try {
        return await run.call(call, (claim) =>
          original.call(tool, input, runManager, { ...config, signal: signalOf(claim) }),
        );
      } catch (error) {
        if (!(error instanceof ToolBlockedError)) throw error;
        const hasArtifact = Reflect.get(tool as object, "responseFormat") === "content_and_artifact";
        return hasArtifact ? [error.message, undefined] : error.message;
      }
    };
    // An object that inherits from the tool, so that it is still an instance of the tool's class.
    return Object.create(tool, { _call: { value: guarded, writable: true, configurable: true } });
  });
}

function langGraphStep({ metadata }: LangChainConfig): number {
  const step = metadata?.langgraph_step;
  if (typeof step === "number") return step;
  throw refusedField(
    "step",
    "must be an option outside LangGraph: the config has no metadata.langgraph_step",
  );
}
