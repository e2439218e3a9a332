import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Attempt, Record } from "@onceward/gen/onceward/v1/record_pb.ts";
import type { DeclinedCall } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { formatDuration } from "../../format/duration.ts";
import { formatNoun } from "../../format/quantity.ts";
import { StateMark } from "../../parts/state-mark.tsx";
import { Time, useNow } from "../../parts/time.tsx";
import { UserText } from "../../parts/user-text.tsx";
import common from "../../styles/common.module.css";
import styles from "../../styles/screens.module.css";
import { forgottenAttempts, type TimelineEvent, timelineOf } from "./timeline.ts";

interface RecordTimelineProps {
  readonly record: Record;
  readonly attempts: readonly Attempt[];
  /** Calls on the key that did not get its claim. */
  readonly declined: readonly DeclinedCall[];
}

/** What happened to a record, oldest first, and what will; the future is marked by a word and a broken line. */
export function RecordTimeline({ record, attempts, declined }: RecordTimelineProps) {
  const missing = forgottenAttempts(attempts);
  return (
    <section aria-labelledby="timeline">
      <h2 id="timeline">Timeline</h2>
      {missing > 0 && (
        <p className={common.quiet}>
          {`${formatNoun(missing, "earlier attempt", "earlier attempts")} ended before these; Onceward keeps the last 16.`}
        </p>
      )}
      <Events events={timelineOf(record, attempts, declined)} />
    </section>
  );
}

/** A list of events, oldest first. */
export function Events({ events }: { readonly events: readonly TimelineEvent[] }) {
  const now = useNow();
  return (
    <ol className={`${common.plain} ${styles.timeline}`}>
      {events.map((event) => (
        <li key={event.id} data-when={event.isDue && timestampDate(event.at) > now ? "future" : "past"}>
          <div className={common.note}>
            <Time at={event.at} form="both" />
          </div>
          <div className={styles.what}>
            <StateMark tone={event.tone} word={event.what} />
            <Details event={event} />
          </div>
        </li>
      ))}
    </ol>
  );
}

function Details({
  event: { attempt, owner, heldMs, checkpoint, reason, job, call },
}: {
  readonly event: TimelineEvent;
}) {
  const details: readonly (readonly [string, ReactNode])[] = [
    ["attempt", attempt],
    ["owner", owner && <UserText>{owner}</UserText>],
    ["held for", heldMs !== undefined && formatDuration(heldMs)],
    ["last checkpoint", checkpoint && <UserText>{checkpoint}</UserText>],
    ["reason", reason && <UserText>{reason}</UserText>],
    ["by", job !== undefined && <Link href={`/jobs/${job}`}>{`job ${job}`}</Link>],
    ["API key", call !== undefined && <UserText>{call.actor}</UserText>],
    ["request", call !== undefined && <UserText>{call.requestId}</UserText>],
  ];
  return (
    <div className={`${common.note} ${styles.details}`}>
      {details
        .filter(([, value]) => value)
        .map(([name, value]) => (
          <span key={name}>
            {name} <b>{value}</b>
          </span>
        ))}
    </div>
  );
}
