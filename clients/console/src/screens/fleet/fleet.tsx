import { useQuery } from "@connectrpc/connect-query";
import { OperatorService, type Replica } from "@onceward/gen/onceward/v1/operator_pb.ts";
import { CliHint } from "../../parts/cli-hint.tsx";
import { Pager, usePage } from "../../parts/list.tsx";
import { ErrorState, Loading } from "../../parts/list-states.tsx";
import { useLiveInterval } from "../../shell/live.tsx";
import { Screen } from "../../shell/screen.tsx";
import { Degraded } from "./degraded.tsx";
import { Doctor } from "./doctor.tsx";
import { Replicas } from "./replicas.tsx";
import { ServerInfo } from "./server-info.tsx";

const PAGE_SIZE = 100;
/** Heartbeats come every 3 s. */
const REFRESH_MS = 5_000;

/** The screen "Fleet": the replicas, what degrades them, and what doctor finds. */
export default function Fleet() {
  return (
    <Screen
      title="Fleet"
      lead="The replicas on this database, as their last heartbeats described them. Live, unless it is paused above."
    >
      <Content />
    </Screen>
  );
}

function Content() {
  const refetchInterval = useLiveInterval(REFRESH_MS);
  const list = usePage(OperatorService.method.listReplicas, { pageSize: PAGE_SIZE }, REFRESH_MS);
  // This one answers without the database, too.
  const info = useQuery(OperatorService.method.getServerInfo, {}, { refetchInterval });
  const isLoading = [list, info].some(({ data, error }) => data === undefined && error === null);
  if (isLoading) return <Loading rows={12} />;
  const here = info.data === undefined ? [] : [{ id: info.data.replicaId, degraded: info.data.degraded }];
  const replicas = list.data?.replicas ?? [];
  return (
    <div aria-busy={list.isPlaceholderData}>
      <Degraded replicas={[...here, ...replicas]} operationsPerSecond={sumOf(replicas)} />
      {list.error !== null && <ErrorState error={list.error} retry={list.refetch} />}
      {list.data !== undefined && (
        <>
          <Replicas
            replicas={list.data.replicas}
            hereId={info.data?.replicaId}
            readAt={new Date(list.dataUpdatedAt)}
          />
          <Pager nextPageToken={list.data.nextPageToken} />
          <CliHint command="onceward operator replicas" />
        </>
      )}
      <Doctor />
      {info.error !== null && <ErrorState error={info.error} retry={info.refetch} />}
      {info.data !== undefined && <ServerInfo info={info.data} />}
    </div>
  );
}

function sumOf(replicas: readonly Replica[]): number {
  return replicas.reduce((sum, { load }) => sum + (load?.operationsPerSecond ?? 0), 0);
}
