import { useQuery } from "@connectrpc/connect-query";
import { type GetKeyHistoryResponse, TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { Unanswered } from "../../parts/list-states.tsx";
import { Time } from "../../parts/time.tsx";
import { useLiveInterval } from "../../shell/live.tsx";
import common from "../../styles/common.module.css";
import { keyHistoryOf } from "./key-history.ts";

/** A replica stores what it counted every 5 s. */
const REFRESH_MS = 5_000;

/** Reads what became of calls on a key that did not get its claim. */
export function useKeyHistory(namespace: string, key: string) {
  return useQuery(
    TenantAdminService.method.getKeyHistory,
    { namespace, key },
    { refetchInterval: useLiveInterval(REFRESH_MS) },
  );
}

/** How often a key was repeated and refused, as one sentence, what became of these calls, and since when. */
export function Duplicates({ query }: { readonly query: ReturnType<typeof useKeyHistory> }) {
  return (
    <section aria-labelledby="duplicates">
      <h2 id="duplicates">Duplicates and refusals</h2>
      {query.data === undefined ? <Unanswered query={query} rows={2} /> : <Counts history={query.data} />}
    </section>
  );
}

function Counts({ history }: { readonly history: GetKeyHistoryResponse }) {
  const { answer, parts } = keyHistoryOf(history);
  if (answer === undefined) {
    return (
      <p className={common.quiet}>
        None is kept. Duplicates are shown some seconds after they come, those of the busiest keys first.
      </p>
    );
  }
  return (
    <>
      <p>
        <b>{answer}</b> First <Time at={history.firstAt} />, last <Time at={history.lastAt} />.
      </p>
      <ul>
        {parts.map((part) => (
          <li key={part}>{part}</li>
        ))}
      </ul>
    </>
  );
}
