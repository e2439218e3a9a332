import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { TenantAdmin } from "@onceward/client/admin";
import { type CountRecordsResponse, CountRecordsResponseSchema } from "@onceward/client/proto";
import type { Command } from "commander";
import { createTenantAdmin } from "../clients.ts";
import type { Host } from "../host.ts";
import { namespaceNames, requireNamespace } from "../known-names.ts";
import { asJson, type Column } from "../output.ts";
import { type Session, sessions } from "../session.ts";
import { Moment } from "../times.ts";
import { command, type LimitOption, withLimit } from "./group.ts";

/** A namespace's records by state. */
interface Counted {
  readonly namespace: string;
  readonly counts: CountRecordsResponse;
}

const COLUMNS: readonly Column<Counted>[] = [
  ["NAMESPACE", ({ namespace }) => namespace],
  ["IN_PROGRESS", ({ counts }) => `${counts.inProgress}`],
  ["LAPSED", ({ counts }) => `${counts.lapsed}`],
  ["COMPLETED", ({ counts }) => `${counts.completed}`],
  ["RELEASED", ({ counts }) => `${counts.released}`],
  ["AMBIGUOUS", ({ counts }) => `${counts.ambiguous}`],
  ["AMBIGUOUS SINCE", ({ counts }) => new Moment(counts.oldestAmbiguousSince), "wide"],
];

/** Returns `records count`. */
export function countCommand(host: Host): Command {
  const asAdmin = sessions(host, createTenantAdmin);
  return withLimit(
    command(
      "count [namespace]",
      "Counts the records of a namespace, or of each namespace, by state. Lapsed: in progress with a lease that has ended, for the next claim to take over.",
      "records count charges",
      "records count --json",
    ),
  ).action(
    asAdmin(async (session, given: string | undefined, { limit }: LimitOption) => {
      const { client, call, output } = session;
      const names =
        given === undefined ? await namespaceNames(client, call, limit) : { items: [given], hasMore: false };
      const items: Counted[] = [];
      for (const namespace of names.items.slice(0, limit)) {
        items.push({ namespace, counts: await countRecords(session, namespace) });
      }
      if (given !== undefined && items.every(({ counts }) => isZero(counts))) {
        await requireNamespace(client, call, given);
      }
      const hasMore = names.hasMore || names.items.length > limit;
      output.values({ items, hasMore }, COLUMNS, toJson);
    }),
  );
}

function isZero({ inProgress, lapsed, completed, released, ambiguous }: CountRecordsResponse): boolean {
  return inProgress + lapsed + completed + released + ambiguous === 0n;
}

/** Counts a namespace's records over all pages. */
export async function countRecords(
  { client, call }: Pick<Session<Pick<TenantAdmin, "countRecords">>, "client" | "call">,
  namespace: string,
): Promise<CountRecordsResponse> {
  const total = create(CountRecordsResponseSchema);
  let pageToken = "";
  do {
    const page = await client.countRecords({ namespace, pageToken }, call);
    total.inProgress += page.inProgress;
    total.lapsed += page.lapsed;
    total.completed += page.completed;
    total.released += page.released;
    total.ambiguous += page.ambiguous;
    const [oldest] = [total.oldestAmbiguousSince, page.oldestAmbiguousSince]
      .filter((since) => since !== undefined)
      .sort((a, b) => timestampMs(a) - timestampMs(b));
    if (oldest !== undefined) total.oldestAmbiguousSince = oldest;
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return total;
}

/** Returns the counts as Protobuf JSON, with the namespace in the place of the page token. */
function toJson({ namespace, counts }: Counted): object {
  const { nextPageToken: _, ...fields } = asJson(CountRecordsResponseSchema, counts) as Record<
    string,
    unknown
  >;
  return { namespace, ...fields };
}
