import { checkFunction } from "../errors/violations.ts";
import type { AgentRun } from "./agent-run.ts";
import { hideArgument } from "./arguments.ts";
import { signalOf } from "./claim-of.ts";
import { checkToolNames } from "./options.ts";

/** What this adapter reads of a message of the AI SDK (ModelMessage). */
export interface AiSdkMessage {
  readonly role: string;
  readonly content?: unknown;
}

/** What this adapter reads of the options that the AI SDK passes to `execute`. */
interface ExecuteOptions {
  readonly toolCallId: string;
  readonly messages: readonly AiSdkMessage[];
  readonly abortSignal?: AbortSignal | undefined;
}

type Execute = (input: unknown, options: ExecuteOptions) => unknown;

type InputOf<Tool> = Tool extends { execute?: infer Fn }
  ? NonNullable<Fn> extends (input: infer Input, ...rest: never[]) => unknown
    ? Input
    : unknown
  : unknown;

/** How the tools' calls are named. */
export interface AiSdkOptions<Tools> {
  /**
   * Returns the step of a call from the messages before the model's response. Needed if your runtime shortens the messages:
   * the default counts the assistant's.
   */
  readonly step?: ((messages: readonly AiSdkMessage[]) => string | number) | undefined;
  /** By tool: returns the operation's own key, see `ToolCall.key`. Default: none. */
  readonly keys?: { readonly [Name in keyof Tools]?: (input: InputOf<Tools[Name]>) => string } | undefined;
  /**
   * By tool: its own argument for an idempotency key, see `ToolCall.keyArgument`. The model does not see it in `jsonSchema()`, nor
   * at the top of a Zod object without refinements; leave it out of other schemas. Default: none.
   */
  readonly keyArguments?: { readonly [Name in keyof Tools]?: string } | undefined;
}

/**
 * Returns tools of the AI SDK (`ai` 5, 6 and 7) whose `execute` runs once per call. Wrap the tools that have an effect; a
 * tool without `execute` is returned unchanged.
 *
 * A blocked call throws ToolBlockedError, whose message the SDK gives to the model. Of a tool that yields several outputs,
 * the last one is stored and returned. `execute` gets `claim.signal` as its `abortSignal`, and the claim by `claimOf`.
 *
 * @throws InvalidRequestError for an invalid option, also for a key argument that a tool's schema surely lacks.
 */
export function aiSdkTools<Tools extends Readonly<Record<string, object>>>(
  run: AgentRun,
  tools: Tools,
  options: AiSdkOptions<Tools> = {},
): Tools {
  const { step = countAssistantMessages, keys = {}, keyArguments = {} } = options;
  checkFunction("step", step);
  checkToolNames(Object.keys(tools), { keys, keyArguments });
  const guarded = Object.entries(tools).map(([name, tool]) => {
    const execute: Execute | undefined = Reflect.get(tool, "execute");
    if (execute === undefined) return [name, tool];
    const keyOf = Reflect.get(keys, name) as ((input: unknown) => string) | undefined;
    if (keyOf !== undefined) checkFunction(`keys.${name}`, keyOf);
    const keyArgument: string | undefined = Reflect.get(keyArguments, name);
    const guardedExecute: Execute = (input, given) => {
      const { toolCallId: callId, messages, abortSignal: signal } = given;
      const before = messagesBefore(messages, callId);
      const call = {
        tool: name,
        step: step(before),
        input,
        // Without a key where one is expected, the call is refused.
        key: keyOf && (keyOf(input) ?? ""),
        keyArgument,
        callId,
        response: messages,
        signal,
      };
      return run.call(call, (claim, keyed) =>
        lastOutput(execute(keyed, { ...given, abortSignal: signalOf(claim) })),
      );
    };
    const inputSchema: unknown = Reflect.get(tool, "inputSchema");
    const hidden = keyArgument !== undefined && {
      inputSchema: hideArgument(inputSchema, keyArgument, `keyArguments.${name}`),
    };
    return [name, { ...tool, ...hidden, execute: guardedExecute }];
  });
  return Object.fromEntries(guarded);
}

function countAssistantMessages(messages: readonly AiSdkMessage[]): number {
  return messages.filter(({ role }) => role === "assistant").length;
}

/** Returns the messages before the call's own. A call that a person approved is part of the messages. */
function messagesBefore(messages: readonly AiSdkMessage[], toolCallId: string): readonly AiSdkMessage[] {
  const index = messages.findIndex(
    ({ role, content }) =>
      role === "assistant" &&
      Array.isArray(content) &&
      content.some((part) => part?.toolCallId === toolCallId),
  );
  return index === -1 ? messages : messages.slice(0, index);
}

async function lastOutput(result: unknown): Promise<unknown> {
  const output = await result;
  if (typeof output !== "object" || output === null || !(Symbol.asyncIterator in output)) return output;
  let last: unknown;
  for await (const next of output as AsyncIterable<unknown>) last = next;
  return last;
}
