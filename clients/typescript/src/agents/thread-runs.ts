import { refusedField } from "../errors/violations.ts";
import { AgentRun } from "./agent-run.ts";
import type { LangChainConfig } from "./langchain.ts";
import { type AgentRunner, type AgentRunOptions, checkAgentRunOptions } from "./options.ts";

/** Threads that a process remembers at once; the service knows the calls of the others. */
const MAX_THREADS = 1024;

/**
 * Returns a function that finds the run of a call by its LangGraph thread (`configurable.thread_id`), for `langChainTools`:
 * one compiled graph, with its tools, serves all threads. It remembers the 1,024 threads that were used last.
 *
 * The time of a thread's keys is that in its id, if it is a UUID of version 1, 6 or 7, or a ULID. LangGraph has no other time of
 * a thread, so a namespace that requires times needs such ids.
 *
 * The graph needs a checkpointer: without one, the steps of a thread begin at 0 each time the graph is invoked.
 *
 * @throws InvalidRequestError for an invalid option, and from the function for a call without a thread.
 */
export function threadRuns(
  onceward: AgentRunner,
  options: Omit<AgentRunOptions, "runId" | "runCreatedAt">,
): (config: LangChainConfig) => AgentRun {
  checkAgentRunOptions({ ...options, runId: "thread" });
  const runs = new Map<string, AgentRun>();
  return ({ configurable }) => {
    const runId = configurable?.thread_id;
    if (typeof runId !== "string")
      throw refusedField(
        "thread_id",
        "must be a text in the config's configurable: invoke the graph with { configurable: { thread_id } }",
      );
    const known = runs.get(runId);
    if (known === undefined) checkAgentRunOptions({ ...options, runId });
    const run = known ?? new AgentRun(onceward, { ...options, runId });
    runs.delete(runId);
    runs.set(runId, run);
    const [oldest] = runs.keys();
    if (runs.size > MAX_THREADS && oldest !== undefined) runs.delete(oldest);
    return run;
  };
}
