import type { Client } from "@connectrpc/connect";
import type { Record } from "@onceward/gen/onceward/v1/record_pb.ts";
import type { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";

/** What a search for a key needs of TenantAdminService. */
export type SearchClient = Pick<Client<typeof TenantAdminService>, "listRecords">;

/** More records than a person reads beside a field; the others are found by naming the namespace. */
const MAX_FOUND = 20;
/** A page examines the server's namespaces for a second: some 100,000 in all. */
const MAX_PAGES = 5;
/** Requests at a time: a search must not use up the tenant's rate of calls. */
const PARALLEL = 4;

/** The records that have a key. */
export interface Found {
  readonly records: readonly Record[];
  /** False: there may be more. */
  readonly isAll: boolean;
}

/** Returns the records with exactly this key: of one namespace, or of all if `namespace` is empty. */
export async function findKey(client: SearchClient, key: string, namespace: string): Promise<Found> {
  const records: Record[] = [];
  let pageToken = "";
  for (let page = 0; page < MAX_PAGES && records.length < MAX_FOUND; page += 1) {
    const answer = await client.listRecords({ key, namespace, pageSize: MAX_FOUND, pageToken });
    records.push(...answer.records);
    pageToken = answer.nextPageToken;
    if (pageToken === "") return { records, isAll: true };
  }
  return { records, isAll: false };
}

/** Returns the records with exactly this key of some namespaces: those of a person who may not ask about all together. */
export async function findKeyIn(
  client: SearchClient,
  key: string,
  namespaces: readonly string[],
): Promise<Found> {
  const records: Record[] = [];
  for (let start = 0; start < namespaces.length; start += PARALLEL) {
    const some = namespaces.slice(start, start + PARALLEL);
    const found = await Promise.all(some.map((namespace) => findKey(client, key, namespace)));
    records.push(...found.flatMap((one) => one.records));
  }
  return { records, isAll: true };
}
