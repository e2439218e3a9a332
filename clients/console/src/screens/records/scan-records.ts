import type { Record } from "@onceward/gen/onceward/v1/record_pb.ts";
import type { ListRecordsResponse } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";

/** A request examines records for a second: a second one still answers within two. */
const SCAN_MS = 1_000;

/** Reads a list until a page is full, it ends, or a second has passed: where few records match, most requests find none. */
export async function scanRecords(
  fetchPage: (
    pageToken: string,
    pageSize: number,
  ) => Promise<Pick<ListRecordsResponse, "records" | "nextPageToken">>,
  { token, size, nowMs = () => performance.now() }: { token: string; size: number; nowMs?: () => number },
) {
  const records: Record[] = [];
  const endMs = nowMs() + SCAN_MS;
  let nextPageToken = token;
  do {
    const page = await fetchPage(nextPageToken, size - records.length);
    records.push(...page.records);
    nextPageToken = page.nextPageToken;
  } while (nextPageToken !== "" && records.length < size && nowMs() < endMs);
  return { records, nextPageToken };
}

/** Returns records with the newest claim first. */
export function newestFirst(records: readonly Record[]): readonly Record[] {
  const secondsOf = ({ claimedAt }: Record) =>
    Number(claimedAt?.seconds ?? 0n) + (claimedAt?.nanos ?? 0) / 1e9;
  return records.toSorted((a, b) => secondsOf(b) - secondsOf(a));
}
