import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import { formatDurationMs } from "@onceward/decode/durations.ts";
import type { Policy } from "@onceward/gen/onceward/v1/policy_pb.ts";
import type { UpdateNamespaceRequestSchema } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { formatDuration, parseDuration } from "../../format/duration.ts";

/** A change of a namespace's key retention. */
export type Change =
  | { readonly kind: "set"; readonly retentionMs: number }
  /** Remove the namespace's own value: it follows the tenant's. */
  | { readonly kind: "inherit" };

/** The contract's bounds of a key retention. */
const SHORTEST_MS = 60_000;
const LONGEST_MS = 400 * 86_400_000;

/** Returns the key retention of a typed text; undefined: it is none, or out of bounds. */
export function parseRetention(text: string): number | undefined {
  const ms = parseDuration(text);
  return ms !== undefined && ms >= SHORTEST_MS && ms <= LONGEST_MS ? ms : undefined;
}

/** Returns the request that makes or previews a change. An etag that is empty is of a namespace that was never declared. */
export function requestFor(
  namespace: string,
  change: Change,
  etag: string,
): MessageInitShape<typeof UpdateNamespaceRequestSchema> {
  const policy = change.kind === "set" ? { keyRetention: durationFromMs(change.retentionMs) } : {};
  return {
    namespace: { name: namespace, policy, etag },
    updateMask: { paths: ["policy.key_retention"] },
    allowMissing: true,
  };
}

/** Returns the command line that previews a change. */
export function commandFor(namespace: string, change: Change): string {
  const value = change.kind === "set" ? formatDurationMs(change.retentionMs) : "inherit";
  return `onceward retention set ${namespace} --key ${value} --dry-run`;
}

/** A retention before and after a change, as words. */
export interface RetentionRow {
  readonly name: string;
  readonly before: string;
  readonly after: string;
}

/** Returns the retentions in force before and after a change: results' follow the key's unless they are set. */
export function compareRetentions(
  before: Policy | undefined,
  after: Policy | undefined,
): readonly RetentionRow[] {
  const fields = [
    ["Key retention", "keyRetention"],
    ["Result retention", "resultRetention"],
    ["Failure retention", "failureRetention"],
  ] as const;
  return fields.map(([name, field]) => ({
    name,
    before: describe(before?.[field]),
    after: describe(after?.[field]),
  }));
}

function describe(duration: Policy["keyRetention"]): string {
  return duration === undefined ? "not known" : formatDuration(durationMs(duration));
}
