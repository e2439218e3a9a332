import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import type { ModelCall } from "../../adapters/agents/models.ts";

/** A chat model of LangChain with these responses: tool calls, each with an id that no earlier call had, or a text. */
export class ScriptedChatModel extends BaseChatModel {
  readonly #responses: (readonly ModelCall[] | string)[];

  constructor(...responses: (readonly ModelCall[] | string)[]) {
    super({});
    this.#responses = responses;
  }

  override bindTools(): this {
    return this;
  }

  _llmType(): string {
    return "scripted";
  }

  async _generate(_messages: BaseMessage[]) {
    const response = this.#responses.shift() ?? "Done.";
    const message =
      typeof response === "string"
        ? new AIMessage(response)
        : new AIMessage({
            content: "",
            tool_calls: response.map(({ toolName, input }) => ({
              type: "tool_call" as const,
              id: crypto.randomUUID(),
              name: toolName,
              args: input as Record<string, unknown>,
            })),
          });
    return { generations: [{ text: "", message }] };
  }
}
