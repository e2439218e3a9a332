import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import type { CountRecordsResponse, TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";

const STATES = ["inProgress", "lapsed", "completed", "released", "ambiguous"] as const;

/** A state of which the records are counted. */
export type CountedState = (typeof STATES)[number];

/** The records of a namespace by state. */
export type StateCounts = Readonly<Record<CountedState, bigint>> & {
  /** When the lease of the longest ambiguous record ended. */
  readonly oldestAmbiguousSince: Timestamp | undefined;
};

/** A namespace whose records are counted. */
export interface NamespaceCounts {
  readonly namespace: string;
  readonly counts: StateCounts;
  /** False while more of its records are to be examined. */
  readonly isWhole: boolean;
}

const NO_RECORDS: StateCounts = {
  ...{ inProgress: 0n, lapsed: 0n, completed: 0n, released: 0n, ambiguous: 0n },
  oldestAmbiguousSince: undefined,
};

/** What finds the namespaces to count. */
type NamespaceClient = Pick<Client<typeof TenantAdminService>, "listNamespaces" | "listUndeclaredNamespaces">;

/** More namespaces than a person waits for; beyond them a namespace has to be named. Of each kind. */
const MAX_NAMESPACES = 100;

/** Returns the namespaces that have records or a policy: the first 100 declared and the first 100 others. */
export async function namespacesOf(
  client: NamespaceClient,
): Promise<{ readonly names: readonly string[]; readonly isAll: boolean }> {
  const page = { pageSize: MAX_NAMESPACES };
  const [declared, undeclared] = await Promise.all([
    client.listNamespaces(page),
    client.listUndeclaredNamespaces(page),
  ]);
  return {
    names: [...declared.namespaces.map(({ name }) => name), ...undeclared.names],
    isAll: declared.nextPageToken === "" && undeclared.nextPageToken === "",
  };
}

type FetchPage = (namespace: string, pageToken: string) => Promise<CountRecordsResponse>;

/**
 * Counts the records of one namespace after the other. The server examines a bounded number for an answer, so each
 * answer yields what is known so far.
 */
export async function* countNamespaces(
  names: readonly string[],
  fetchPage: FetchPage,
): AsyncGenerator<NamespaceCounts> {
  for (const namespace of names) {
    let counts = NO_RECORDS;
    let pageToken = "";
    do {
      const page = await fetchPage(namespace, pageToken);
      counts = addCounts(counts, page);
      pageToken = page.nextPageToken;
      yield { namespace, counts, isWhole: pageToken === "" };
    } while (pageToken !== "");
  }
}

/** Returns the counts of two ranges of a namespace together. */
export function addCounts(
  first: StateCounts,
  second: Pick<CountRecordsResponse, keyof StateCounts>,
): StateCounts {
  const sums = STATES.map((state) => [state, first[state] + second[state]] as const);
  const oldest = [first.oldestAmbiguousSince, second.oldestAmbiguousSince]
    .filter((since) => since !== undefined)
    .sort((a, b) => timestampMs(a) - timestampMs(b));
  return {
    ...(Object.fromEntries(sums) as Record<CountedState, bigint>),
    oldestAmbiguousSince: oldest[0],
  };
}
