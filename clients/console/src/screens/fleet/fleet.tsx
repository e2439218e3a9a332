import { durationMs } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@connectrpc/connect-query";
import {
  type GetServerInfoResponse,
  ListTenantUsageRequest_Order,
  OperatorService,
  type TenantUsage,
} from "@onceward/gen/onceward/v1/operator_pb.ts";
import { degradedStates } from "@onceward/words/degraded";
import { refusedBesideClaims } from "@onceward/words/refusals";
import { formatLatency } from "@onceward/words/words";
import { formatNoun, formatRate, formatShare } from "../../format/quantity.ts";
import { CliHint, Runbook } from "../../parts/copy-button.tsx";
import { DataTable } from "../../parts/data-table.tsx";
import { Facts } from "../../parts/facts.tsx";
import { Pager, usePage } from "../../parts/list.tsx";
import { ErrorState, Loading } from "../../parts/list-states.tsx";
import { type Mark, StateMark } from "../../parts/state-mark.tsx";
import { useLiveInterval } from "../../shell/live.ts";
import { Screen } from "../../shell/screen.tsx";
import common from "../../styles/common.module.css";
import styles from "../../styles/screens.module.css";
import { Doctor } from "./doctor.tsx";
import { useDiagnosis, worstOf } from "./fleet-count.tsx";
import { Replicas } from "./replicas.tsx";

const PAGE_SIZE = 100;
/** Heartbeats come every 3 s. */
const REFRESH_MS = 5_000;

/** The tenants that make the most claims. */
const BUSIEST = { order: ListTenantUsageRequest_Order.RATE, pageSize: 50 };

/** Returns the last minute of tenants in phrases: how many of their calls quotas refused, and the slowest p99. */
function nowOf(tenants: readonly TenantUsage[]): readonly string[] {
  const now = tenants.flatMap(({ now: minute }) => (minute === undefined ? [] : [minute]));
  const claims = now.reduce((sum, minute) => sum + Number(minute.claims), 0);
  const refused = now.reduce((sum, minute) => sum + refusedBesideClaims(minute), 0);
  const latencies = now.flatMap(({ p99Latency }) =>
    p99Latency === undefined ? [] : [durationMs(p99Latency)],
  );
  if (claims + refused === 0) return [];
  return [
    `${formatShare(refused / (claims + refused))} of claims refused in the last minute`,
    ...(latencies.length === 0 ? [] : [`p99 ${formatLatency(Math.max(...latencies))}`]),
  ];
}

/** The screen "Fleet": the replicas, what degrades them, and what doctor finds. */
export default function Fleet() {
  return (
    <Screen title="Fleet" lead="The replicas on this database, by their last heartbeats.">
      <Content />
    </Screen>
  );
}

function Content() {
  const refetchInterval = useLiveInterval(REFRESH_MS);
  const list = usePage(OperatorService.method.listReplicas, { pageSize: PAGE_SIZE }, REFRESH_MS);
  // This one answers without the database, too.
  const info = useQuery(OperatorService.method.getServerInfo, {}, { refetchInterval });
  const busiest = useQuery(OperatorService.method.listTenantUsage, BUSIEST, { refetchInterval });
  const diagnosis = useDiagnosis();
  const isLoading = [list, info].some(({ data, error }) => data === undefined && error === null);
  if (isLoading) return <Loading rows={12} />;
  const here = info.data === undefined ? [] : [{ id: info.data.replicaId, degraded: info.data.degraded }];
  const replicas = list.data?.replicas ?? [];
  const perSecond = replicas.reduce((sum, { load }) => sum + (load?.operationsPerSecond ?? 0), 0);
  const answer = [`${formatRate(perSecond)} operations a second`, ...nowOf(busiest.data?.tenants ?? [])];
  const worst = worstOf(diagnosis.data?.findings);
  return (
    <div aria-busy={list.isPlaceholderData}>
      <Degraded
        replicas={[...here, ...replicas]}
        answer={answer}
        finding={worst && { ...worst, word: `Doctor: ${worst.word}` }}
      />
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
      {info.error !== null && <ErrorState error={info.error} retry={info.refetch} />}
      {info.data !== undefined && <ServerInfo info={info.data} />}
      <Doctor diagnosis={diagnosis} />
    </div>
  );
}

interface DegradedProps {
  readonly replicas: Parameters<typeof degradedStates>[0];
  /** What they do now, in phrases. */
  readonly answer: readonly string[];
  /** Doctor's worst. */
  readonly finding: Mark | undefined;
}

/** The degraded states of the replicas: what each means, and where the runbook says what to do. */
function Degraded({ replicas, answer, finding }: DegradedProps) {
  const states = degradedStates(replicas);
  if (states.length === 0) {
    return (
      <p className={common.answer}>
        <StateMark {...(finding ?? { tone: "good", word: "Healthy" })} />{" "}
        {[formatNoun(new Set(replicas.map(({ id }) => id)).size, "replica", "replicas"), ...answer].join(
          ", ",
        )}
      </p>
    );
  }
  return (
    <ul className={`${common.plain} ${styles.findings}`} aria-label="Degraded states">
      {states.map(({ state, title, meaning, runbook, replicaIds }) => (
        <li key={state} className={common.card} data-edge="warning">
          <StateMark tone="attention" word={title} />
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
  const { schemaVersion, config } = info;
  return (
    <section aria-labelledby="server">
      <h2 id="server">The replica that answers this page</h2>
      <Facts of={{ "Newest migration": schemaVersion || "-" }} />
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
