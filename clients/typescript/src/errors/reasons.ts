import { type DescEnumValue, getOption } from "@bufbuild/protobuf";
import { ClientReasonSchema, type ErrorReason, ErrorReasonSchema } from "../gen/onceward/v1/errors_pb.ts";
import { type ReasonFacts, reason as reasonFacts } from "../gen/onceward/v1/facts_pb.ts";

/** Options are decoded for an error, not for each import. */
const VALUES: ReadonlyMap<string, DescEnumValue> = new Map(
  [ErrorReasonSchema, ClientReasonSchema].flatMap(({ values }) =>
    values.map((value) => [value.localName, value] as const),
  ),
);

/** Returns what the contract says of a reason; undefined for a reason of a newer service. */
export function factsOf(reason: string): ReasonFacts | undefined {
  const value = VALUES.get(reason);
  return value && getOption(value, reasonFacts);
}

/** Returns the name of a reason of the service; undefined for a reason of a newer service. */
export function reasonName(reason: ErrorReason): string | undefined {
  // From the descriptor, which every bundle has: the enum itself would repeat its names.
  return ErrorReasonSchema.value[reason]?.localName;
}
