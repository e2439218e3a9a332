import { Code } from "@connectrpc/connect";
import { useQuery } from "@connectrpc/connect-query";
import { type Record, Record_State } from "@onceward/gen/onceward/v1/record_pb.ts";
import { type GetRecordResponse, TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { payloadLine } from "@onceward/words/payload";
import { recordOf } from "@onceward/words/record-address";
import { describeLease, type Lease, leaseOf } from "@onceward/words/record-lease";
import type { QueryState } from "@tanstack/react-query";
import { Link, useLocation, useSearch } from "wouter";
import { commandLine } from "../../format/command.ts";
import { CliHint, CopyButton } from "../../parts/copy-button.tsx";
import { Empty, Unanswered } from "../../parts/list-states.tsx";
import { LookupLink } from "../../parts/lookup-link.tsx";
import { NamespaceLinks } from "../../parts/namespace-links.tsx";
import { RecordStateMark } from "../../parts/record-state.tsx";
import { RESOLUTIONS, resolutionsOf } from "../../parts/resolution/resolution.ts";
import { useResolution } from "../../parts/resolution/resolve-dialog.tsx";
import { useNow } from "../../parts/time.tsx";
import { UserText } from "../../parts/user-text.tsx";
import { readFailure } from "../../session/failure.ts";
import { useLive } from "../../shell/live.ts";
import { Screen } from "../../shell/screen.tsx";
import common from "../../styles/common.module.css";
import styles from "../../styles/screens.module.css";
import { LINK_FIELD } from "../ambiguous/filters.ts";
import { QUEUE_PATH, useQueueSteps } from "./queue-steps.tsx";
import { Duplicates, RecordFacts, RecordResult, useKeyHistory } from "./record-facts.tsx";
import { Events, RecordTimeline } from "./record-timeline.tsx";
import { declinedEvents } from "./timeline.ts";

/** How often a record is read again, by the lease of its newest claim. A settled record changes only if somebody acts on it. */
const REFRESH_MS: Readonly<globalThis.Record<Lease, number | false>> = {
  // Short enough to see a holder complete.
  held: 3_000,
  lapsed: 10_000,
  ambiguous: 10_000,
  settled: false,
};

/** Everything about one key: its state, what happened to it, its result, and what an administrator can do. */
export default function RecordScreen() {
  // The router's own parameters would decode "%252F" twice.
  const [location] = useLocation();
  const { namespace, key } = recordOf(window.location.pathname, useSearch());
  return (
    <Screen
      title={key}
      heading={<UserText>{key}</UserText>}
      parent={parentOf(location, namespace)}
      actions={<CopyButton text={key} label="Copy the key" />}
    >
      <Content key={`${namespace}/${key}`} namespace={namespace} recordKey={key} />
    </Screen>
  );
}

function Content({ namespace, recordKey }: { readonly namespace: string; readonly recordKey: string }) {
  const { isLive } = useLive();
  const [location] = useLocation();
  const history = useKeyHistory(namespace, recordKey);
  const reply = useQuery(
    TenantAdminService.method.getRecord,
    { namespace, key: recordKey },
    { refetchInterval: ({ state }) => isLive && refreshMs(state) },
  );
  // Below what is loaded: it would move when that arrives.
  const hint = <CliHint command={commandLine("onceward records show", {}, [namespace, recordKey])} />;
  if (isMissing(reply.error)) {
    return (
      <>
        <Empty>
          {`The namespace ${namespace} has no record of this key: it was never claimed, or it is no longer remembered.`}
        </Empty>
        <Duplicates query={history} />
        <Events events={declinedEvents(history.data?.calls ?? [])} />
        {hint}
      </>
    );
  }
  if (reply.data === undefined) return <Unanswered query={reply} rows={14} />;
  const Shown = location.startsWith(QUEUE_PATH) ? QueuedRecord : RecordContent;
  return (
    <>
      <Shown reply={reply.data} history={history} />
      {hint}
    </>
  );
}

interface RecordContentProps {
  readonly reply: GetRecordResponse;
  readonly history: ReturnType<typeof useKeyHistory>;
  /** Where a decision leads; undefined: it stays on the record, unless that is forgotten. */
  readonly next?: string;
}

/** A record that was opened from the queue: a decision leads to the next one. */
function QueuedRecord(props: RecordContentProps) {
  const { nav, next } = useQueueSteps(props.reply.record);
  return (
    <>
      {nav}
      <RecordContent {...props} next={next} />
    </>
  );
}

function RecordContent({ reply, history, next }: RecordContentProps) {
  const { record, attempts, auditTarget, providerLink } = reply;
  const now = useNow();
  const [, navigate] = useLocation();
  const { buttons, dialog } = useResolution(record === undefined ? [] : [record], (kind) => {
    const to = next ?? (kind === "forget" ? "/records" : undefined);
    if (to !== undefined) navigate(to);
  });
  if (record === undefined) return undefined;
  const audit = new URLSearchParams({ target: auditTarget });
  return (
    <>
      <div className={`${common.card} ${styles.situation}`}>
        <RecordStateMark record={record} />
        <p>{describeLease(record, now)}</p>
        {record.state === Record_State.AMBIGUOUS && <Saved record={record} isLinked={providerLink !== ""} />}
        <LookupLink template={providerLink} record={record} />
        {buttons}
        {resolutionsOf(record).map((kind) => (
          <p key={kind} className={common.quiet}>
            {RESOLUTIONS[kind].answer}: {RESOLUTIONS[kind].meaning}
          </p>
        ))}
      </div>
      <div className={styles.halves}>
        <div>
          <RecordFacts record={record} />
          <RecordResult record={record} />
        </div>
        <div>
          <Duplicates query={history} />
          <RecordTimeline record={record} attempts={attempts} declined={history.data?.calls ?? []} />
          <p>
            <Link href={`/audit?${audit}`}>Audit events of this record</Link>
          </p>
          <p className={common.quiet}>
            Every refused request is in the server's log, by the name of the record:{" "}
            <code>{auditTarget}</code>
          </p>
        </div>
      </div>
      {dialog}
    </>
  );
}

/** What the attempt saved, which tells how far it came, and how a person sees the rest. */
function Saved({ record, isLinked }: { readonly record: Record; readonly isLinked: boolean }) {
  const { name, state } = record.checkpoint ?? {};
  return (
    <p>
      Last checkpoint: {name === undefined ? "none" : <UserText>{name}</UserText>}
      {state && ", saved "}
      {state && <UserText>{payloadLine(state)}</UserText>}
      {!isLinked && ". Set a provider link to look it up: "}
      {!isLinked && <NamespaceLinks names={[record.namespace]} field={LINK_FIELD} />}
    </p>
  );
}

function parentOf(location: string, namespace: string): readonly [string, string] {
  if (location.startsWith(QUEUE_PATH)) return [QUEUE_PATH + window.location.search, "All ambiguous records"];
  return [`/records?namespace=${namespace}`, `Records of ${namespace}`];
}

/** Returns when a record is read again; false: it is settled, or it has ended. */
function refreshMs({ data, error }: QueryState<GetRecordResponse, Error>): number | false {
  if (data?.record === undefined || isMissing(error)) return false;
  return REFRESH_MS[leaseOf(data.record, new Date())];
}

function isMissing(error: Error | null): boolean {
  return error !== null && readFailure(error).code === Code.NotFound;
}
