import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { type AuditEvent, AuditEvent_Outcome } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { Link } from "wouter";
import { DAY_MS, HOUR_MS } from "../../format/duration.ts";
import { formatNoun } from "../../format/quantity.ts";
import { UserText } from "../../parts/user-text.tsx";
import { useSession } from "../../session/session.ts";
import common from "../../styles/common.module.css";

/** How many ambiguous records people have settled in the last day, and who: from the audit, which a limited key may not read. */
export function Settled() {
  const { namespaces } = useSession();
  return namespaces.length > 0 ? undefined : <SettledLine />;
}

function SettledLine() {
  // To the hour: a request that changed at each drawing would never end.
  const after = new Date(Math.floor((Date.now() - DAY_MS) / HOUR_MS) * HOUR_MS);
  const one = useSettled("ResolveRecord", after);
  const many = useSettled("ResolveAmbiguousRecords", after);
  if (one.data === undefined || many.data === undefined) return <p className={common.quiet}>&nbsp;</p>;
  const byActor = Map.groupBy(
    [...one.data.events, ...many.data.events],
    (event) => event.actorLabel || event.actor,
  );
  const counts = Array.from(
    byActor,
    ([actor, events]) => [actor, events.reduce((sum, each) => sum + recordsOf(each), 0)] as const,
  )
    .filter(([, count]) => count > 0)
    .toSorted(([, a], [, b]) => b - a);
  const total = counts.reduce((sum, [, count]) => sum + count, 0);
  const isCut = [one, many].some(({ data }) => data?.nextPageToken !== "");
  return (
    <p className={common.quiet}>
      Settled in the last 24 h:{" "}
      {total === 0
        ? "none by a person"
        : `${isCut ? "at least " : ""}${formatNoun(total, "record", "records")}`}
      {counts.map(([actor, count]) => (
        <span key={actor}>
          , {count} by <UserText>{actor}</UserText>
        </span>
      ))}
      .{" "}
      {total > 0 && (
        <Link href={`/audit?${new URLSearchParams({ action: "ResolveRecord", outcome: "done" })}`}>
          Audit events
        </Link>
      )}
    </p>
  );
}

function useSettled(action: string, after: Date) {
  return useQuery(TenantAdminService.method.listAuditEvents, {
    ...{ action, outcome: AuditEvent_Outcome.DONE, pageSize: 200 },
    after: timestampFromDate(after),
  });
}

/** Returns how many records an event is about: that of a job's end has the number, that of its start has none. */
function recordsOf({ action, after }: AuditEvent): number {
  if (action === "ResolveRecord") return 1;
  return typeof after?.recordsChanged === "number" ? after.recordsChanged : 0;
}
