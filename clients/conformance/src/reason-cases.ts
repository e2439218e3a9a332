import { getOption } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { ErrorReasonSchema } from "../../typescript/src/gen/onceward/v1/errors_pb.ts";
import { ReasonClass, reason as reasonFacts } from "../../typescript/src/gen/onceward/v1/facts_pb.ts";
import { codeOf } from "../../typescript/src/testing/refusal.ts";

/** The reasons whose errors have a class of their own, such as KeyTooOldError. */
const OWN_CLASSES: ReadonlySet<string> = new Set([
  "CLAIM_SUPERSEDED",
  "CREDENTIAL_INVALID",
  "FINGERPRINT_MISMATCH",
  "KEY_TOO_OLD",
  "NAMESPACE_DENIED",
  "ROLE_DENIED",
  "TENANT_SUSPENDED",
]);

/** Returns a case for each reason of the service, as the contract describes it: a client reports its error and calls no function. */
export function reasonCases() {
  return ErrorReasonSchema.values.slice(1).map((value) => {
    const { reasonClass, mayHaveHappened } = getOption(value, reasonFacts);
    const reason = value.localName;
    const code = codeOf(reason);
    const isDelayed = reasonClass === ReasonClass.RETRY && code !== Code.DeadlineExceeded;
    const details = {
      code,
      reason,
      requestId: "request-1",
      metadata: { limit: "10" },
      ...(isDelayed && { retryDelayMs: 60_000 }),
    };
    const error = { ...details, class: classOf(reason), claim: { namespace: "charges", key: "order-1" } };
    return {
      name: `${reason} is reported with its details, and nothing runs`,
      do: "run",
      runs: [{ options: { timeoutMs: 1 }, function: [{ return: { charge: "ch_1" } }] }],
      service: [
        { on: "claim" as const, error: { ...details, message: "The message is for people." } },
        ...(mayHaveHappened ? [{ on: "lookup" as const, answer: {} }] : []),
      ],
      expect: {
        outcome: { runs: [{ error }], functions: [] },
        calls: [{ on: "claim" as const }, ...(mayHaveHappened ? [{ on: "lookup" as const }] : [])],
      },
    };
  });
}

function classOf(reason: string): string {
  if (!OWN_CLASSES.has(reason)) return "OncewardError";
  const words = reason.toLowerCase().split("_");
  return `${words.map((word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`).join("")}Error`;
}
