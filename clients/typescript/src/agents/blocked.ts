import type { OncewardError } from "../errors/errors.ts";

/**
 * Why a tool did not run, and returned no stored value either.
 *
 * - `AMBIGUOUS`: an earlier attempt began and never reported its outcome, so that it may have had its effect.
 * - `ARGUMENTS_CHANGED`: an earlier attempt of the step or operation called the tool with other arguments.
 * - `IN_PROGRESS`: another process runs the same call.
 * - `RESULT_UNAVAILABLE`: the call was done before, and its value is no longer stored.
 * - `TOO_OLD`: the call's key is older than the service remembers keys, so that the call may have been done and forgotten.
 * - `UNAVAILABLE`: the service did not grant the claim, see `cause`.
 */
export type BlockedReason =
  | "AMBIGUOUS"
  | "ARGUMENTS_CHANGED"
  | "IN_PROGRESS"
  | "RESULT_UNAVAILABLE"
  | "TOO_OLD"
  | "UNAVAILABLE";

/**
 * A tool call that did not run. The `message` is for the model: it says what is known of the effect, and what to do next.
 */
export class ToolBlockedError extends Error {
  override readonly name = "ToolBlockedError";
  readonly reason: BlockedReason;
  readonly tool: string;
  /** The operation's key, which an administrator needs to resolve an ambiguous record. */
  readonly key: string;

  constructor(reason: BlockedReason, { tool, key }: { tool: string; key: string }, cause?: OncewardError) {
    super(textOf(reason, JSON.stringify(tool), JSON.stringify(key), cause), cause && { cause });
    this.reason = reason;
    this.tool = tool;
    this.key = key;
  }
}

function textOf(reason: BlockedReason, tool: string, key: string, cause?: OncewardError): string {
  switch (reason) {
    case "AMBIGUOUS":
      return (
        `OUTCOME UNKNOWN. The tool ${tool} was called for this, and stopped before it reported its outcome. Its effect may ` +
        "have happened or not, and it does not run again automatically. Do not call it again for this purpose, and do not " +
        "say that it succeeded or failed. If another tool can read the outcome, use that tool. Otherwise tell the user " +
        `that a person has to check the operation ${key}.`
      );
    case "ARGUMENTS_CHANGED":
      return (
        `NOT RUN. An earlier attempt already called the tool ${tool} with other arguments, and that call may have had its ` +
        "effect. Nothing ran now. Repeat the call with the arguments of the first attempt to get its result. If this is a " +
        // The service compares the calls of an operation's own key, and the run those of a step.
        `different and additional operation, ${cause ? "tell the user" : "call the tool in your next step"}.`
      );
    case "IN_PROGRESS":
      return (
        `STILL RUNNING. Another process is running this call of the tool ${tool}. Nothing ran now. Call the tool again ` +
        "with the same arguments later to get its result."
      );
    case "RESULT_UNAVAILABLE":
      return (
        `ALREADY DONE. This call of the tool ${tool} was done before, once. Its result is no longer available. Nothing ` +
        "ran now. Do not call the tool again for this purpose. If you need the result, read it by another tool."
      );
    case "TOO_OLD":
      return (
        `OUTCOME UNKNOWN. This call of the tool ${tool} is so old that it may have been done before, and be forgotten. Nothing ` +
        "ran now. Do not call the tool again for this purpose, and do not say that it succeeded or failed. If another tool can " +
        `read the outcome, use that tool. Otherwise tell the user that a person has to check the operation ${key}.`
      );
    case "UNAVAILABLE":
      return (
        `NOT RUN. The tool ${tool} is protected against repetitions, and the protection is not available now. Nothing ran ` +
        "now. This says nothing about earlier calls for this purpose. Tell the user both, or call the tool again with the same " +
        "arguments later."
      );
    default:
      return reason satisfies never;
  }
}
