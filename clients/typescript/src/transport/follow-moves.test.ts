import type { Transport } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { CODE } from "../errors/connect-error.ts";
import { OncewardError } from "../errors/errors.ts";
import { followMoves } from "./follow-moves.ts";

const invalid = new OncewardError("CREDENTIAL_INVALID", "unknown", { code: CODE.UNAUTHENTICATED });
const lost = new OncewardError("NO_ANSWER", "refused", { code: CODE.UNAVAILABLE });
const foreign = new OncewardError("NO_ANSWER", "not gRPC", { code: CODE.UNKNOWN });
const to = (address: string) =>
  new OncewardError("TENANT_MOVING", "moving", { code: CODE.UNAVAILABLE, metadata: { address } });
const toB = to("http://b");
const toC = to("http://c");

/** What the homes answer at a step, by their hosts: an error, or else success; and the homes that its call asks, with its error. */
type Step = readonly [answers: Readonly<Record<string, OncewardError>>, asked: string];

const A = ["http://a"];
const CASES: readonly (readonly [title: string, configured: readonly string[], ...Step[]])[] = [
  ["a chain is followed, then gone there directly", A, [{ a: toB, b: toC }, "a b c"], [{}, "c"]],
  ["the way back is followed", A, [{ a: toB }, "a b"], [{ b: to("http://a") }, "b a"], [{}, "a"]],
  ["homes that name each other end a call", A, [{ a: toB, b: to("http://a") }, "a b TENANT_MOVING"]],
  ["no call follows from a socket", ["unix:/a"], [{ a: toB }, "a TENANT_MOVING"]],
  ["no call follows from two schemes", [...A, "https://z"], [{ a: toB }, "a TENANT_MOVING"]],
  ["a home without the tenant is not kept", A, [{ a: toB, b: invalid }, "a b TENANT_MOVING"], [{}, "a"]],
  ["another server is not kept", A, [{ a: toB, b: foreign }, "a b TENANT_MOVING"], [{}, "a"]],
  ["a home without an answer is left", A, [{ a: toB }, "a b"], [{ b: lost }, "b NO_ANSWER"], [{}, "a"]],
  ["a home that lost the tenant is left", A, [{ a: toB }, "a b"], [{ a: toC, b: invalid }, "b a c"]],
];

/** A client of homes that answer as `answers` says; its calls return the hosts that they asked, and their error. */
function clientOf(configured: readonly string[]) {
  let asked: string[] = [];
  let answers: Step[0] = {};
  let closed = 0;
  const { transport, close } = followMoves(configured, ([origin = ""]) => {
    const host = origin.slice(-1);
    const unary = async () => {
      asked.push(host);
      if (answers[host] !== undefined) throw answers[host];
    };
    return { transport: { unary } as unknown as Transport, close: () => void closed++ };
  });
  async function call(given: Step[0]) {
    [asked, answers] = [[], given];
    const unary = transport.unary as unknown as () => Promise<void>;
    await unary().catch(({ reason }: OncewardError) => asked.push(reason));
    return asked.join(" ");
  }
  return { call, close, closed: () => closed };
}

for (const [title, configured, ...steps] of CASES)
  test(title, async () => {
    const { call } = clientOf(configured);
    for (const [answers, asked] of steps) expect(await call(answers)).toBe(asked);
  });

test("an old home that names ever new addresses has four connections opened, and all are closed", async () => {
  const { call, close, closed } = clientOf(["http://a"]);
  for (let n = 0; n < 10; n++) await call({ a: to(`http://x${n}`), [n]: invalid });
  close();
  expect(closed()).toBe(5);
});
