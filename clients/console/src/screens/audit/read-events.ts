import type { AuditEvent } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import type { AuditPage, PageRequest } from "./use-audit-client.ts";

/** The server's largest page. */
const PAGE_SIZE = 1_000;
/** More would be a file that no spreadsheet opens well, and some 10 MB of memory of the page. */
export const MAX_EXPORTED = 10_000;

/** The events of an export. */
export interface ReadEvents {
  readonly events: readonly AuditEvent[];
  /** Whether older events that match were skipped. */
  readonly isCut: boolean;
}

/**
 * Reads the newest events by pages, at most `MAX_EXPORTED`. `progressed` gets the count after each page.
 *
 * @throws what `fetchPage` throws.
 */
export async function readEvents(
  fetchPage: (page: PageRequest) => Promise<AuditPage>,
  progressed: (count: number) => void,
): Promise<ReadEvents> {
  const events: AuditEvent[] = [];
  let pageToken = "";
  do {
    const page = await fetchPage({ pageSize: PAGE_SIZE, pageToken });
    events.push(...page.events);
    pageToken = page.nextPageToken;
    progressed(Math.min(events.length, MAX_EXPORTED));
  } while (pageToken !== "" && events.length < MAX_EXPORTED);
  const isCut = pageToken !== "" || events.length > MAX_EXPORTED;
  return { events: events.slice(0, MAX_EXPORTED), isCut };
}
