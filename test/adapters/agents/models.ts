import * as mocks from "ai/test";

/** A tool call that a model makes. */
export interface ModelCall {
  readonly toolName: string;
  readonly input: unknown;
}

/** The part of a mock model that tests use, of every version of the AI SDK. */
type Model = InstanceType<typeof mocks.MockLanguageModelV4>;

// Each major has another version of the specification.
const { MockLanguageModelV4 = Reflect.get(mocks, "MockLanguageModelV2") } = mocks;

/** Returns a model with these responses: tool calls, each with an id that no earlier call had, and then a text. */
export function modelOf(...responses: readonly (readonly ModelCall[] | string)[]): Model {
  return new MockLanguageModelV4({
    doGenerate: responses.map((response) => ({
      content: contentOf(response),
      ...finishOf(response),
      warnings: [],
    })),
    doStream: responses.map((response) => ({
      stream: new ReadableStream({
        start(controller) {
          for (const part of streamed(response)) controller.enqueue(part);
          controller.enqueue({ type: "finish", ...finishOf(response) });
          controller.close();
        },
      }),
    })),
  } as never);
}

function contentOf(response: readonly ModelCall[] | string) {
  if (typeof response === "string") return [{ type: "text", text: response }];
  return response.map(({ toolName, input }) => ({
    type: "tool-call",
    toolCallId: crypto.randomUUID(),
    toolName,
    input: JSON.stringify(input),
  }));
}

function streamed(response: readonly ModelCall[] | string) {
  if (typeof response !== "string") return contentOf(response);
  const parts = [{ type: "text-start" }, { type: "text-delta", delta: response }, { type: "text-end" }];
  return parts.map((part) => ({ ...part, id: "1" }));
}

function finishOf(response: readonly ModelCall[] | string) {
  const reason = typeof response === "string" ? "stop" : "tool-calls";
  const isOld = MockLanguageModelV4.name.endsWith("V2");
  return {
    finishReason: isOld ? reason : { unified: reason, raw: reason },
    usage: isOld
      ? { inputTokens: 1, outputTokens: 1, totalTokens: 2 }
      : { inputTokens: { total: 1 }, outputTokens: { total: 1 } },
  };
}
