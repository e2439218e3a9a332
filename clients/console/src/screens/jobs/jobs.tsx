import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { RecordJob } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { titleOf } from "@onceward/words/job-words";
import { formatNoun } from "../../format/quantity.ts";
import { type Columns, DataTable } from "../../parts/data-table.tsx";
import { List, usePage } from "../../parts/list.tsx";
import { StateMark } from "../../parts/state-mark.tsx";
import { Time } from "../../parts/time.tsx";
import { Screen } from "../../shell/screen.tsx";
import { CancelButton, JobProgress } from "./job-parts.tsx";
import { stateOf } from "./job-words.ts";

const REFRESH_MS = 5_000;

const COLUMNS: Columns<RecordJob> = [
  ["What it does", titleOf],
  ["Job", ({ id }) => String(id), "number"],
  ["Namespace", ({ namespace }) => (namespace === "" ? "all" : namespace)],
  ["State", (job) => <StateMark {...stateOf(job)} />],
  ["Progress", (job) => <JobProgress job={job} />],
  ["Created", ({ createdAt }) => <Time at={createdAt} />],
  ["Finished", ({ finishedAt }) => <Time at={finishedAt} />],
  ["", (job) => <CancelButton job={job} look="row" />],
];

/** The background changes of records, newest first. */
export default function Jobs() {
  const page = usePage(TenantAdminService.method.listRecordJobs, {}, REFRESH_MS);
  return (
    <Screen
      title="Jobs"
      lead="Changes of many records, in the background: a new retention, a deleted namespace, a resolution."
    >
      <List
        page={page}
        rows={8}
        isEmpty={({ jobs }) => jobs.length === 0}
        empty="No background changes yet. One begins when a change concerns stored records."
        command="onceward jobs list"
      >
        {({ jobs }) => (
          <DataTable
            caption={`${formatNoun(jobs.length, "job", "jobs")} on this page, newest first`}
            columns={COLUMNS}
            rows={jobs}
            rowKey={({ id }) => String(id)}
            href={({ id }) => `/jobs/${id}`}
          />
        )}
      </List>
    </Screen>
  );
}
