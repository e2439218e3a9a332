import { getOption } from "@bufbuild/protobuf";
import { ClientReasonSchema, type ErrorReason, ErrorReasonSchema } from "../gen/onceward/v1/errors_pb.ts";
import { type ReasonFacts, reason as reasonFacts } from "../gen/onceward/v1/facts_pb.ts";

const FACTS: ReadonlyMap<string, ReasonFacts> = new Map(
  [ErrorReasonSchema, ClientReasonSchema].flatMap(({ values }) =>
    values.map((value) => [value.localName, getOption(value, reasonFacts)] as const),
  ),
);

/** Returns what the contract says of a reason; undefined for a reason of a newer service. */
export function factsOf(reason: string): ReasonFacts | undefined {
  return FACTS.get(reason);
}

/** Returns the name of a reason of the service; undefined for a reason of a newer service. */
export function reasonName(reason: ErrorReason): string | undefined {
  // From the descriptor, which every bundle has: the enum itself would repeat its names.
  return ErrorReasonSchema.value[reason]?.localName;
}
