import type { PolicyInForce, Retention } from "../../core/domain/policy.ts";

/** The retention that a policy stamps on records, before and after its change. */
export interface RetentionChange {
  readonly was: Retention;
  readonly becomes: Retention;
}

/** The changes of retention in a tenant's namespaces. */
export interface RetentionChanges {
  readonly byNamespace: Readonly<Record<string, RetentionChange>>;
  /** The change for all other namespaces; undefined: none. */
  readonly others: RetentionChange | undefined;
}

/** Returns the change for a namespace; undefined: none. */
export function changeFor(
  { byNamespace, others }: RetentionChanges,
  namespace: string,
): RetentionChange | undefined {
  return Object.hasOwn(byNamespace, namespace) ? byNamespace[namespace] : others;
}

/** Returns the change of retention from one policy to another. */
export function retentionChange(was: PolicyInForce, becomes: PolicyInForce): RetentionChange {
  return { was: was.stamped, becomes: becomes.stamped };
}
