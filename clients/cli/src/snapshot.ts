import { type Timestamp, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { TenantAdmin } from "@onceward/client/admin";
import {
  GetUsageRequest_Grouping,
  Record_State,
  type RecordJob,
  RecordJob_State,
  RecordJobSchema,
} from "@onceward/client/proto";
import { HOUR_MS } from "#words/durations";
import { asJson, enumName } from "./output.ts";
import { collectPages } from "./pages.ts";
import type { Session } from "./session.ts";
import { formatMoment } from "./times.ts";
import { collectUsage, sumOf } from "./usage-hours.ts";

/** The ambiguous records that are counted; more are shown as "1000+". One page of the service. */
const MAX_AMBIGUOUS = 1000;
/** The newest jobs that are searched for unfinished ones; a tenant has at most 20 of those. */
const MAX_JOBS = 100;
/** The current hour, and the next one if it begins meanwhile. */
const MAX_HOURS = 2;

/** What happens in a namespace or in a tenant at one time. */
export interface Snapshot {
  readonly at: Timestamp;
  /** Empty: the whole tenant. */
  readonly namespace: string;
  /** Answered claims and refused late holders since the current hour began. Replicas store them every few seconds. */
  readonly hour: Readonly<Record<Counter, bigint>>;
  readonly ambiguousRecords: number;
  readonly hasMoreAmbiguous: boolean;
  /** When the lease of the longest ambiguous of these records ended; undefined: none is ambiguous. */
  readonly ambiguousSince: Timestamp | undefined;
  /** Unfinished jobs. */
  readonly jobs: readonly RecordJob[];
}

const COUNTERS = [
  "claims",
  "granted",
  "replayed",
  "inProgress",
  "ambiguous",
  "mismatches",
  "fenced",
] as const;
type Counter = (typeof COUNTERS)[number];

/** Reads the current usage, ambiguous records and unfinished jobs. @param namespace empty: of the tenant. */
export async function readSnapshot(
  { client, call }: Session<Pick<TenantAdmin, "getUsage" | "listRecords" | "listRecordJobs">>,
  namespace: string,
): Promise<Snapshot> {
  const nowMs = Date.now();
  const after = timestampFromMs(nowMs - (nowMs % HOUR_MS));
  const grouping = GetUsageRequest_Grouping.HOUR;
  const usage = await collectUsage({ client, call }, { namespace, after, grouping }, MAX_HOURS);
  const ambiguous = await collectPages(MAX_AMBIGUOUS, "records", (page) =>
    client.listRecords({ namespace, state: Record_State.AMBIGUOUS, ...page }, call),
  );
  const { jobs } = await client.listRecordJobs({ pageSize: MAX_JOBS }, call);
  const [ambiguousSince] = ambiguous.items
    .flatMap(({ leaseExpiresAt }) => leaseExpiresAt ?? [])
    .sort((a, b) => timestampMs(a) - timestampMs(b));
  return {
    at: timestampFromMs(nowMs),
    namespace,
    hour: Object.fromEntries(
      COUNTERS.map((counter) => [counter, sumOf(usage.items, counter)]),
    ) as Snapshot["hour"],
    ambiguousRecords: ambiguous.items.length,
    hasMoreAmbiguous: ambiguous.hasMore,
    ambiguousSince,
    jobs: jobs.filter(
      (job) =>
        job.state !== RecordJob_State.DONE &&
        (namespace === "" || job.namespace === "" || job.namespace === namespace),
    ),
  };
}

/** Returns a snapshot for `--json`; numbers of 64 bits are text, as in Protobuf JSON. */
export function snapshotJson({ at, namespace, hour, jobs, ...ambiguous }: Snapshot): object {
  return {
    at: new Date(timestampMs(at)).toISOString(),
    namespace,
    hour: Object.fromEntries(COUNTERS.map((counter) => [counter, `${hour[counter]}`])),
    ambiguousRecords: ambiguous.ambiguousRecords,
    hasMoreAmbiguous: ambiguous.hasMoreAmbiguous,
    ...(ambiguous.ambiguousSince && {
      ambiguousSince: new Date(timestampMs(ambiguous.ambiguousSince)).toISOString(),
    }),
    jobs: jobs.map((job) => asJson(RecordJobSchema, job)),
  };
}

/** Returns a snapshot as one line, and one indented line for each unfinished job. */
export function describeSnapshot(snapshot: Snapshot): string {
  const { at, hour, ambiguousRecords, hasMoreAmbiguous, ambiguousSince, jobs } = snapshot;
  const { claims, granted, replayed, inProgress, ambiguous, mismatches, fenced } = hour;
  const outcomes = [
    `${granted} granted`,
    `${replayed + inProgress} duplicates (${replayed} replayed, ${inProgress} in progress)`,
    `${ambiguous} ambiguous`,
    `${mismatches} mismatches`,
    `${fenced} fenced`,
  ].join(", ");
  const since = ambiguousSince === undefined ? "" : ` since ${formatMoment(ambiguousSince)}`;
  const lines = [
    `${formatMoment(at)}  this hour ${claims} claims: ${outcomes}; ambiguous records ${ambiguousRecords}${hasMoreAmbiguous ? "+" : ""}${since}`,
    ...jobs.map(
      ({ id, state, recordsExamined, recordsChanged, recordsForgotten }) =>
        `  job ${id} ${enumName(RecordJob_State, state)}: ${recordsExamined} examined, ${recordsChanged} changed, ${recordsForgotten} forgotten`,
    ),
  ];
  return lines.map((line) => `${line}\n`).join("");
}
