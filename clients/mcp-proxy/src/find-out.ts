import { isDeepStrictEqual } from "node:util";
import { didNotHappen, happened, type Resolution, stillOpen, unknown } from "@onceward/client/agents";
import { type ResolvePolicy, valueAt } from "./policy.ts";

type Members = Readonly<Record<string, unknown>>;

/**
 * Asks the policy's tool whether a call happened. An answer that the policy does not name means that it is unknown.
 *
 * @param args the call's arguments, as the server got them.
 * @param openMs how long the server may still take for the call, in milliseconds: until then it can't be known that it did not happen.
 */
export async function findOut(
  policy: ResolvePolicy,
  args: unknown,
  openMs: number,
  read: (params: { readonly name: string; readonly arguments: Members }) => Promise<Members>,
): Promise<Resolution> {
  const asked = Object.entries(policy.arguments).map(([name, from]): [string, unknown] => [
    name,
    typeof from === "string" ? valueAt(args, from) : valueAt(from, "/value"),
  ]);
  // Without one of them, the answer may be about other calls, too.
  if (asked.some(([, value]) => value === undefined)) return unknown();
  const result = await read({ name: policy.tool, arguments: Object.fromEntries(asked) });
  if (result.isError === true) return unknown();
  const answer = result.structuredContent ?? JSON.parse(`${valueAt(result, "/content/0/text")}`);
  if (meets(answer, policy.happened)) {
    const part = policy.result === undefined ? undefined : valueAt(answer, policy.result);
    return happened(part === undefined ? result : resultOf(part));
  }
  if (policy.didNotHappen === undefined || !meets(answer, policy.didNotHappen)) return unknown();
  return openMs > 0 ? stillOpen({ retryAfterMs: Math.ceil(openMs) }) : didNotHappen();
}

function meets(answer: unknown, expected: Members): boolean {
  return Object.entries(expected).every(([at, values]) =>
    [values].flat().some((value) => isDeepStrictEqual(valueAt(answer, at), value)),
  );
}

function resultOf(value: unknown): Members {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return { content: [{ type: "text", text }], ...(isObject && { structuredContent: value }) };
}
