import type { Policy } from "./policy.ts";

/** How long what is remembered, in seconds. */
export type Retention = Pick<Policy, "keyRetentionS" | "resultRetentionS" | "failureRetentionS">;

/** What a policy said, and what it says now. */
export interface RetentionChange {
  readonly was: Retention;
  readonly becomes: Retention;
}

/** What re-stamping does to each namespace of a tenant. */
export interface RetentionChanges {
  readonly byNamespace: Readonly<Record<string, RetentionChange>>;
  /** To the namespaces that aren't named; undefined: nothing. */
  readonly others: RetentionChange | undefined;
}

/** What it does to the records of one namespace; undefined: nothing. */
export function changeFor(
  { byNamespace, others }: RetentionChanges,
  namespace: string,
): RetentionChange | undefined {
  return Object.hasOwn(byNamespace, namespace) ? byNamespace[namespace] : others;
}

/** From one policy to another. */
export function retentionChange(was: Policy, becomes: Policy): RetentionChange {
  return { was: retentionOf(was), becomes: retentionOf(becomes) };
}

function retentionOf({ keyRetentionS, resultRetentionS, failureRetentionS }: Policy): Retention {
  return { keyRetentionS, resultRetentionS, failureRetentionS };
}
