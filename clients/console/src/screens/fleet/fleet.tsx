import { useQuery } from "@connectrpc/connect-query";
import { type GetServerInfoResponse, OperatorService } from "@onceward/gen/onceward/v1/operator_pb.ts";
import { degradedStates } from "@onceward/words/degraded";
import { formatEstimate, formatNoun } from "../../format/quantity.ts";
import { CliHint, Runbook } from "../../parts/copy-button.tsx";
import { DataTable } from "../../parts/data-table.tsx";
import { Facts } from "../../parts/facts.tsx";
import { Pager, usePage } from "../../parts/list.tsx";
import { ErrorState, Loading } from "../../parts/list-states.tsx";
import { Quantity } from "../../parts/quantity.tsx";
import { StateMark } from "../../parts/state-mark.tsx";
import { useLiveInterval } from "../../shell/live.tsx";
import { Screen } from "../../shell/screen.tsx";
import common from "../../styles/common.module.css";
import styles from "../../styles/screens.module.css";
import { Doctor } from "./doctor.tsx";
import { Replicas } from "./replicas.tsx";

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
  const perSecond = replicas.reduce((sum, { load }) => sum + (load?.operationsPerSecond ?? 0), 0);
  return (
    <div aria-busy={list.isPlaceholderData}>
      <Degraded replicas={[...here, ...replicas]} operationsPerSecond={perSecond} />
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

interface DegradedProps {
  readonly replicas: Parameters<typeof degradedStates>[0];
  /** Of all of them together. */
  readonly operationsPerSecond: number;
}

/** The degraded states of the replicas: what each means, and where the runbook says what to do. */
function Degraded({ replicas, operationsPerSecond }: DegradedProps) {
  const states = degradedStates(replicas);
  if (states.length === 0) {
    return (
      <p className={common.answer}>
        <StateMark tone="good" word="Healthy" />
        {`: ${formatNoun(new Set(replicas.map(({ id }) => id)).size, "replica", "replicas")}, ${formatEstimate(operationsPerSecond)} operations a second`}
      </p>
    );
  }
  return (
    <ul className={`${common.plain} ${styles.findings}`} aria-label="Degraded states">
      {states.map(({ state, title, meaning, runbook, replicaIds }) => (
        <li key={state} className={common.card} data-edge="warning">
          <StateMark tone="attention" word={title} /> <code>{state}</code>
          <p>{meaning}</p>
          <p className={common.quiet}>
            On {replicaIds.join(", ")}. <Runbook section={runbook} />
          </p>
        </li>
      ))}
    </ul>
  );
}

/** The replica that answered, and the configuration that it uses. */
function ServerInfo({ info }: { readonly info: GetServerInfoResponse }) {
  const { version, replicaId, schemaVersion, replicas, config } = info;
  return (
    <section aria-labelledby="server">
      <h2 id="server">The replica that answers this page</h2>
      <Facts
        of={{
          Replica: <code>{replicaId}</code>,
          Version: version,
          "Newest migration": schemaVersion || "-",
          "Live replicas": <Quantity value={replicas} />,
        }}
      />
      <details>
        <summary>Its configuration</summary>
        <DataTable
          caption="Effective environment variables. Secrets are replaced."
          columns={[
            ["Variable", ([name]) => <code>{name}</code>],
            ["Value", ([, value]) => <code>{value}</code>],
          ]}
          rows={Object.entries(config).sort(([a], [b]) => (a < b ? -1 : 1))}
          rowKey={([name]) => name}
        />
      </details>
      <CliHint command="onceward operator info" />
    </section>
  );
}
