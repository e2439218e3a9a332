import { useQuery } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { type Advice, adviceOf, type Verdict } from "@onceward/words/retention-advice";
import { VERDICT_NAMES } from "@onceward/words/verdict-words";
import type { Mark, StateTone } from "../../parts/state-mark.tsx";

/** The server advises on as many namespaces at once. */
export const ADVISED_AT_ONCE = 20;
/** Advice is computed from whole hours. */
const FRESH_MS = 60_000;

/** A namespace, and the advice on it; `advice` is undefined until it is answered. */
export interface AdvisedNamespace {
  readonly name: string;
  readonly advice: Advice | undefined;
  readonly error: unknown;
}

/** Returns the advice on each of at most ADVISED_AT_ONCE namespaces; unless `isListed`, nothing is read: more names will come. */
export function useAdvice(names: readonly string[], isListed = true): readonly AdvisedNamespace[] {
  const namespaces = names.slice(0, ADVISED_AT_ONCE);
  const method = TenantAdminService.method.listRetentionAdvice;
  const options = { enabled: isListed && namespaces.length > 0, staleTime: FRESH_MS };
  const { data, error } = useQuery(method, { namespaces }, options);
  const answers = new Map(data?.advice.map((answer) => [answer.namespace, adviceOf(answer)]));
  return namespaces.map((name) => ({ name, advice: answers.get(name), error: error ?? undefined }));
}

const TONES: Readonly<Record<Verdict, StateTone>> = {
  "too short": "attention",
  enough: "good",
  "longer than needed": "good",
  "none late": "good",
  unproven: "quiet",
  "no claims": "quiet",
  "all refused": "attention",
};

/** Returns the verdict in two words, and how to take it. */
export function nameVerdict({ verdict }: Advice): Mark {
  return { tone: TONES[verdict], word: VERDICT_NAMES[verdict] };
}
