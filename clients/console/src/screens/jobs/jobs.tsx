import { useQuery } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { RecordJob } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { keepPreviousData } from "@tanstack/react-query";
import { CliHint } from "../../parts/cli-hint.tsx";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { Empty, Unanswered } from "../../parts/list-states.tsx";
import { Pager } from "../../parts/pager.tsx";
import { usePageToken } from "../../parts/pages.ts";
import { StateMark } from "../../parts/state-mark.tsx";
import { Time } from "../../parts/time.tsx";
import { useLiveInterval } from "../../shell/live.tsx";
import { Screen } from "../../shell/screen.tsx";
import { CancelButton, JobProgress } from "./job-parts.tsx";
import { isUnfinished, stateOf, titleOf } from "./job-words.ts";

const PAGE_SIZE = 50;
const REFRESH_MS = 5_000;
const COMMAND = "onceward jobs list";

const COLUMNS: readonly Column<RecordJob>[] = [
  { heading: "What it does", cell: titleOf },
  { heading: "Job", kind: "number", cell: ({ id }) => String(id) },
  { heading: "Namespace", cell: ({ namespace }) => (namespace === "" ? "all" : namespace) },
  { heading: "State", cell: (job) => <StateMark {...stateOf(job)} /> },
  { heading: "Progress", cell: (job) => <JobProgress job={job} /> },
  { heading: "Created", cell: ({ createdAt }) => <Time at={createdAt} /> },
  { heading: "Finished", cell: ({ finishedAt }) => <Time at={finishedAt} /> },
  { heading: "", cell: (job) => <CancelButton job={job} look="row" /> },
];

/** The background changes of records, newest first. */
export default function Jobs() {
  return (
    <Screen
      title="Jobs"
      lead="Changes of many records, in the background: a new retention, a deleted namespace, a resolution."
    >
      <JobList />
    </Screen>
  );
}

function JobList() {
  const { token } = usePageToken();
  const live = useLiveInterval(REFRESH_MS);
  const list = useQuery(
    TenantAdminService.method.listRecordJobs,
    { pageSize: PAGE_SIZE, pageToken: token },
    { refetchInterval: live, placeholderData: keepPreviousData },
  );
  if (list.data === undefined) return <Unanswered query={list} rows={8} />;
  const { jobs, nextPageToken } = list.data;
  if (jobs.length === 0 && token === "") {
    return (
      <Empty command={COMMAND}>
        No background changes yet. One begins when a change concerns stored records.
      </Empty>
    );
  }
  const unfinished = jobs.filter(isUnfinished).length;
  return (
    <div aria-busy={list.isPlaceholderData}>
      <DataTable
        caption={
          unfinished === 0 ? "No job of this page is unfinished" : `${unfinished} of this page unfinished`
        }
        columns={COLUMNS}
        rows={jobs}
        rowKey={({ id }) => String(id)}
        href={({ id }) => `/jobs/${id}`}
      />
      <Pager nextPageToken={nextPageToken} />
      <CliHint command={COMMAND} />
    </div>
  );
}
