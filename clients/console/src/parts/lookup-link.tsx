import type { Record } from "@onceward/gen/onceward/v1/record_pb.ts";
import { lookupHref } from "@onceward/words/answers";

interface LookupLinkProps {
  readonly template: string | undefined;
  readonly record: Pick<Record, "key" | "owner">;
}

/** Leads to the provider's page about a record, where a person sees whether the effect happened. */
export function LookupLink({ template, record }: LookupLinkProps) {
  const href = lookupHref(template, record);
  if (href === undefined) return undefined;
  return (
    <a href={href} target="_blank" rel="noreferrer" aria-label={`Look up ${record.key}`}>
      Look up ↗
    </a>
  );
}
