import { createQueryOptions, useTransport } from "@connectrpc/connect-query";
import { type Advice, adviceOf } from "@onceward/decode/retention-advice.ts";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { useQueries } from "@tanstack/react-query";

/** Each namespace is a call of its own for its advice. */
export const ADVISED_AT_ONCE = 20;
/** Advice is computed from whole hours. */
const FRESH_MS = 60_000;

/** A namespace, and the advice on it; `advice` is undefined until it is answered. */
export interface AdvisedNamespace {
  readonly name: string;
  readonly advice: Advice | undefined;
  readonly error: unknown;
}

/** Returns the advice on each of at most ADVISED_AT_ONCE namespaces. */
export function useAdvice(names: readonly string[]): readonly AdvisedNamespace[] {
  const transport = useTransport();
  const answers = useQueries({
    queries: names.slice(0, ADVISED_AT_ONCE).map((namespace) => ({
      ...createQueryOptions(TenantAdminService.method.getRetentionAdvice, { namespace }, { transport }),
      staleTime: FRESH_MS,
    })),
  });
  return answers.map(({ data, error }, index) => ({
    name: names[index] ?? "",
    advice: data && adviceOf(data),
    error: error ?? undefined,
  }));
}
