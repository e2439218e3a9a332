import { type Duration, durationMs, timestampDate } from "@bufbuild/protobuf/wkt";
import type { Replica, ReplicaLoad } from "@onceward/gen/onceward/v1/operator_pb.ts";
import { degradedWords } from "@onceward/words/degraded";
import type { ReactNode } from "react";
import { formatDuration } from "../../format/duration.ts";
import { formatCount, formatRate } from "../../format/quantity.ts";
import { formatRelative } from "../../format/time.ts";
import { type Column, type Columns, DataTable } from "../../parts/data-table.tsx";
import { Empty } from "../../parts/list-states.tsx";
import { StateMark } from "../../parts/state-mark.tsx";
import { Time } from "../../parts/time.tsx";
import { UserText } from "../../parts/user-text.tsx";
import common from "../../styles/common.module.css";

interface ReplicasProps {
  readonly replicas: readonly Replica[];
  /** The replica that answered the page's last question about itself. */
  readonly hereId: string | undefined;
  /** When the replicas were read. */
  readonly readAt: Date;
}

/** The live replicas, with their versions side by side and their load. */
export function Replicas({ replicas, hereId, readAt }: ReplicasProps) {
  if (replicas.length === 0) {
    return <Empty command="onceward operator replicas">No replica has stored a heartbeat.</Empty>;
  }
  const columns: Columns<Replica> = [
    [
      "Replica",
      ({ id, host }) => (
        <>
          <code>{id}</code>
          {host !== "" && (
            <div>
              on <UserText>{host}</UserText>
            </div>
          )}
          {id === hereId && <div className={common.quiet}>answers this page</div>}
        </>
      ),
    ],
    ["Version", ({ version }) => version],
    ["State", (replica) => <ReplicaState replica={replica} />],
    ["Heartbeat", ({ seenAt }) => <Heartbeat at={seenAt} readAt={readAt} />],
    ...LOAD_COLUMNS,
    ["Clock", ({ clockOffset }) => clockWords(clockOffset), "number"],
    ["Started", ({ startedAt }) => <Time at={startedAt} />],
  ];
  const versions = new Set(replicas.map(({ version }) => version)).size;
  return (
    <DataTable
      caption={versions === 1 ? "All of one version" : `${versions} versions: normal only during an upgrade`}
      columns={columns}
      rows={replicas}
      rowKey={({ id }) => id}
    />
  );
}

/** A replica has no load before its first heartbeat. */
const LOAD_COLUMNS: readonly Column<Replica>[] = [
  load("Per second", ({ operationsPerSecond }) => formatRate(operationsPerSecond)),
  load("In flight", ({ callsInFlight }) => formatCount(callsInFlight)),
  load("Connections", ({ connections }) => formatCount(connections)),
  load("Pool busy", ({ poolBusy, poolSize, poolAwaited }) => (
    <>
      {poolBusy} of {poolSize}
      {poolAwaited > 0 && <div>{poolAwaited} wait</div>}
    </>
  )),
];

function load(heading: string, cell: (load: ReplicaLoad) => ReactNode): Column<Replica> {
  return [heading, ({ load }) => (load === undefined ? "-" : cell(load)), "number"];
}

function ReplicaState({ replica: { degraded } }: { readonly replica: Replica }) {
  if (degraded.length === 0) return <StateMark tone="good" word="Healthy" />;
  return degraded.map((state) => (
    <div key={state}>
      <StateMark tone="attention" word={degradedWords(state).title} />
    </div>
  ));
}

/** A heartbeat's age when it was read: the page's present is too coarse for seconds. */
function Heartbeat({ at, readAt }: { readonly at: Replica["seenAt"]; readonly readAt: Date }) {
  if (at === undefined) return "-";
  const seenAt = timestampDate(at);
  // The clocks of the browser and the database differ.
  const now = new Date(Math.max(readAt.getTime(), seenAt.getTime()));
  return <time dateTime={seenAt.toISOString()}>{formatRelative(seenAt, now)}</time>;
}

/** Returns how a replica's clock differs from the database's, such as "12 ms ahead". */
export function clockWords(offset: Duration | undefined): string {
  if (offset === undefined) return "-";
  const aheadMs = durationMs(offset);
  if (aheadMs === 0) return "in step";
  return `${formatDuration(Math.abs(aheadMs))} ${aheadMs > 0 ? "ahead" : "behind"}`;
}
