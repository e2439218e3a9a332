import { type Client, createClient } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import type { Record } from "@onceward/gen/onceward/v1/record_pb.ts";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { recordHref } from "@onceward/words/record-address";
import { useQuery } from "@tanstack/react-query";
import { Link, Redirect } from "wouter";
import { Unanswered } from "../../parts/list-states.tsx";
import { UserText } from "../../parts/user-text.tsx";
import { useSession } from "../../session/session.ts";
import { looksLike } from "./filters.ts";

/** Leads to the record of a key, or says what else the text of a search can be. */
export function SearchResults({ text }: { readonly text: string }) {
  const client = createClient(TenantAdminService, useTransport());
  const { namespaces: own } = useSession();
  const kind = looksLike(text);
  const found = useQuery({
    queryKey: ["find key", text, own],
    queryFn: () => find(text),
    enabled: kind !== "fingerprint",
    retry: false,
  });

  async function find(key: string): Promise<Found> {
    const exact = own.length > 0 ? await findKeyIn(client, key, own) : await findKey(client, key, "");
    return exact.records.length > 0 || key === key.trim() ? exact : await find(key.trim());
  }

  if (kind === "fingerprint") return <Redirect to={hrefOf("fingerprint", text.toLowerCase())} replace />;
  if (found.data === undefined) return <Unanswered query={found} rows={2} />;
  const { records, isAll } = found.data;
  const [record] = records;
  if (record !== undefined && records.length === 1)
    return <Redirect to={recordHref(record.namespace, record.key)} replace />;
  return (
    <section aria-label="Search" role="status">
      {record === undefined ? (
        <NotFound text={text.trim()} isRequestId={kind === "request id"} scope={own} />
      ) : (
        <p>
          {`${records.length} records have this key, in `}
          {records.map(({ namespace, key }, index) => (
            <span key={namespace}>
              {index > 0 && ", "}
              <Link href={recordHref(namespace, key)}>{namespace}</Link>
            </span>
          ))}
          .
        </p>
      )}
      {!isAll && <p>There may be more: not all namespaces were looked at in time.</p>}
    </section>
  );
}

interface NotFoundProps {
  readonly text: string;
  readonly isRequestId: boolean;
  /** The namespaces that were looked at; none: all. */
  readonly scope: readonly string[];
}

function NotFound({ text, isRequestId, scope }: NotFoundProps) {
  return (
    <>
      <p>
        {scope.length === 0 ? "No namespace has" : "None of your namespaces has"} the key{" "}
        <UserText>{text}</UserText>.
      </p>
      <ul>
        <li>
          <Link href={hrefOf("prefix", text)}>Search keys that begin with it</Link>
        </li>
        <li>
          <Link href={hrefOf("owner", text)}>Search records of this owner</Link>
        </li>
        {isRequestId && (
          <li>
            Which request claimed a key is not kept: the server's log has it, by this id. Changes by people
            are in the <Link href="/audit">audit</Link>.
          </li>
        )}
      </ul>
    </>
  );
}

function hrefOf(filter: string, text: string): string {
  return `/records?${new URLSearchParams({ [filter]: text })}`;
}

/** What a search for a key needs of TenantAdminService. */
type SearchClient = Pick<Client<typeof TenantAdminService>, "listRecords">;

/** More records than a person reads beside a field; the others are found by naming the namespace. */
const MAX_FOUND = 20;
/** A page examines the server's namespaces for a second: some 100,000 in all. */
const MAX_PAGES = 5;
/** Requests at a time: a search must not use up the tenant's rate of calls. */
const PARALLEL = 4;

/** The records that have a key. */
interface Found {
  readonly records: readonly Record[];
  /** False: there may be more. */
  readonly isAll: boolean;
}

/** Returns the records with exactly this key: of one namespace, or of all if `namespace` is empty. */
async function findKey(client: SearchClient, key: string, namespace: string): Promise<Found> {
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
async function findKeyIn(client: SearchClient, key: string, namespaces: readonly string[]): Promise<Found> {
  const records: Record[] = [];
  for (let start = 0; start < namespaces.length; start += PARALLEL) {
    const some = namespaces.slice(start, start + PARALLEL);
    const found = await Promise.all(some.map((namespace) => findKey(client, key, namespace)));
    records.push(...found.flatMap((one) => one.records));
  }
  return { records, isAll: true };
}
