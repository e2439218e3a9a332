import { getOption } from "@bufbuild/protobuf";
import { ClientReasonSchema, ErrorReasonSchema } from "../gen/onceward/v1/errors_pb.ts";
import { type ReasonFacts, reason as reasonFacts } from "../gen/onceward/v1/facts_pb.ts";

/** Returns what the contract says of a reason; undefined for a reason of a newer service. */
export function factsOf(reason: string): ReasonFacts | undefined {
  for (const { values } of [ErrorReasonSchema, ClientReasonSchema]) {
    const value = values.find(({ localName }) => localName === reason);
    if (value !== undefined) return getOption(value, reasonFacts);
  }
  return undefined;
}
