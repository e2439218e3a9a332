/**
 * `@onceward/client/agents`: tools of agents. A tool call happens once, however often a model repeats it, a framework repeats
 * its step, or a restarted process resumes its run. Needs no package of a framework.
 *
 * ```ts
 * import { aiSdkTools, claimOf, createAgentRun } from "@onceward/client/agents";
 *
 * const run = createAgentRun(onceward, { namespace: "agent-tools", runId: conversation.id });
 * const refund = tool({
 *   inputSchema: z.object({ orderId: z.string(), cents: z.number() }),
 *   execute: (order, options) =>
 *     provider.refund(order, { idempotencyKey: claimOf(options).deriveKey("provider") }),
 * });
 * await generateText({ model, messages: conversation.messages, tools: aiSdkTools(run, { refund }) });
 * ```
 *
 * The runtime names each call: by the run's id, the step and the tool. The arguments are the fingerprint. The model's
 * `tool_call_id` is never a part, because a repeated step has another one.
 *
 * Create an AgentRun each time the run is started or resumed. At most one process at a time may execute a run.
 *
 * @module
 */

import { AgentRun } from "./agents/agent-run.ts";
import { type AgentRunner, type AgentRunOptions, checkAgentRunOptions } from "./agents/options.ts";

export type { AgentRun } from "./agents/agent-run.ts";
export { type AiSdkMessage, type AiSdkOptions, aiSdkTools } from "./agents/ai-sdk.ts";
export {
  DERIVED_KEY_LENGTH,
  KEY_ARGUMENT_LABEL,
  mayHaveArgument,
  withArgument,
  withoutArgument,
} from "./agents/arguments.ts";
export { type BlockedReason, ToolBlockedError } from "./agents/blocked.ts";
export { claimOf } from "./agents/claim-of.ts";
export {
  type LangChainConfig,
  type LangChainOptions,
  type LangChainTool,
  langChainTools,
} from "./agents/langchain.ts";
export type { AgentRunner, AgentRunOptions, ToolCall } from "./agents/options.ts";
export type { CallOrigin } from "./agents/slots.ts";
export { threadRuns } from "./agents/thread-runs.ts";
export { NoEffectError, OutcomeUnknownError } from "./run/outcome-unknown.ts";
export { didNotHappen, happened, type Resolution, stillOpen, unknown } from "./run/resolution.ts";

/**
 * Returns a run of an agent, to guard its tools: with `aiSdkTools`, `langChainTools`, or by its own `call`.
 *
 * @throws InvalidRequestError for an invalid option.
 */
export function createAgentRun(onceward: AgentRunner, options: AgentRunOptions): AgentRun {
  checkAgentRunOptions(options);
  return new AgentRun(onceward, options);
}
