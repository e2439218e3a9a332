import { type AuditEvent, AuditEvent_Outcome } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { isByOperator } from "@onceward/words/audit-actions";
import { Link } from "wouter";
import { formatNoun } from "../../format/quantity.ts";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { StateMark } from "../../parts/state-mark.tsx";
import { Time } from "../../parts/time.tsx";
import { UserText } from "../../parts/user-text.tsx";
import { useSession } from "../../session/session.ts";
import common from "../../styles/common.module.css";
import styles from "../../styles/screens.module.css";
import { actionWords, denialWords, deniedWords } from "./actions.ts";
import { type Difference, differences } from "./difference.ts";

/** So many differences are shown at once; more, when they are asked for. */
const SHOWN_DIFFERENCES = 3;

const TENANT: Column<AuditEvent> = ["Tenant", ({ tenant }) => <Given text={tenant} />];

/** A page of audit events. */
export function EventList({ events }: { readonly events: readonly AuditEvent[] }) {
  const { role } = useSession();
  return (
    <DataTable
      caption={`${formatNoun(events.length, "event", "events")} on this page, newest first`}
      columns={[
        ["When", ({ at }) => <Time at={at} form="both" />],
        ...(role === "OPERATOR" ? [TENANT] : []),
        ["Actor", (event) => <Actor event={event} />],
        ["Action", (event) => <Given text={wordsOf(event)} otherwise="several" />],
        ["Target", ({ target }) => <Given text={target} />],
        ["Outcome", (event) => <Outcome event={event} />],
        ["Change", (event) => <Change event={event} />],
      ]}
      rows={events}
      rowKey={({ id }) => String(id)}
    />
  );
}

/** The id of an API key, unlike a token's subject: it fits into a line. */
const KEY_ID = /^[0-9a-z]{16}$/;

/** Who did it: the label of a key before its id. A tenant gets no label of an operator's key. */
function Actor({ event }: { readonly event: AuditEvent }) {
  const { actor } = event;
  const { actor: own } = useSession();
  const name = event.actorLabel || (isByOperator(event) ? "operator" : "");
  const note = [name === "" ? "" : actor, actor === own ? "you" : ""].filter((part) => part !== "");
  return (
    <div className={KEY_ID.test(actor) ? styles.keyId : undefined}>
      <Given text={name || actor} otherwise="several" />
      {note.length > 0 && <div className={common.note}>{note.join(", ")}</div>}
    </div>
  );
}

function wordsOf({ action, outcome }: AuditEvent): string {
  return outcome === AuditEvent_Outcome.DENIED ? deniedWords(action) : actionWords(action);
}

/** A text of an event. Without an actor or an action, calls of several were refused, and are one event together. */
function Given({ text, otherwise = "-" }: { readonly text: string; readonly otherwise?: string }) {
  return text === "" ? <span className={common.quiet}>{otherwise}</span> : <UserText>{text}</UserText>;
}

function Outcome({ event: { outcome, denial, calls } }: { readonly event: AuditEvent }) {
  if (outcome !== AuditEvent_Outcome.DENIED) return <StateMark tone="good" word="Done" />;
  return (
    <>
      <StateMark tone="bad" word="Denied" />
      <div>{denialWords(denial)}</div>
      {calls > 1 && <div className={common.quiet}>{formatNoun(calls, "call", "calls")} together</div>}
    </>
  );
}

function Change({ event }: { readonly event: AuditEvent }) {
  const { reason, before, after, requestId } = event;
  const changes = differences(before, after);
  const job = after?.recordJob;
  return (
    <div className={styles.change}>
      {reason !== "" && (
        <div>
          <span className={common.quiet}>Reason: </span>
          <UserText>{reason}</UserText>
        </div>
      )}
      <DifferenceLines changes={changes.slice(0, SHOWN_DIFFERENCES)} />
      {typeof job === "string" && <Link href={`/jobs/${job}`}>The job and what it changed</Link>}
      {(changes.length > SHOWN_DIFFERENCES || requestId !== "") && (
        <details>
          <summary>
            {changes.length > SHOWN_DIFFERENCES
              ? `${formatNoun(changes.length - SHOWN_DIFFERENCES, "more value", "more values")}`
              : "Request"}
          </summary>
          <DifferenceLines changes={changes.slice(SHOWN_DIFFERENCES)} />
          {requestId !== "" && (
            <div>
              <span className={common.quiet}>Request in the server's log: </span>
              <code>{requestId}</code>
            </div>
          )}
        </details>
      )}
    </div>
  );
}

function DifferenceLines({ changes }: { readonly changes: readonly Difference[] }) {
  if (changes.length === 0) return undefined;
  return (
    <ul className={common.plain}>
      {changes.map(({ label, before, after }) => (
        <li key={label}>
          <span className={common.quiet}>{label}: </span>
          {before !== undefined && <UserText>{before}</UserText>}
          {before !== undefined && <span className={common.quiet}> becomes </span>}
          <strong>{after === undefined ? "not set" : <UserText>{after}</UserText>}</strong>
        </li>
      ))}
    </ul>
  );
}
