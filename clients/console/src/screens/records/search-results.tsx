import { type Client, createClient } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import type { Record } from "@onceward/gen/onceward/v1/record_pb.ts";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { recordHref } from "@onceward/words/record-address";
import { useQuery } from "@tanstack/react-query";
import { Link, Redirect } from "wouter";
import { Unanswered } from "../../parts/list-states.tsx";
import { NamespaceLinks } from "../../parts/namespace-links.tsx";
import { useNamespaceNames } from "../../parts/namespace-names.ts";
import { UserText } from "../../parts/user-text.tsx";
import { useSession } from "../../session/session.ts";
import { looksLike } from "./filters.ts";

/** Leads to the record of a key, or lists keys and namespaces that begin with the text of a search, and says what else it can be. */
export function SearchResults({ text }: { readonly text: string }) {
  const client = createClient(TenantAdminService, useTransport());
  const { namespaces: own } = useSession();
  const kind = looksLike(text);
  const namespaces = useNamespaceNames(text.trim());
  const found = useQuery({
    queryKey: ["find key", text, own],
    queryFn: () => find(text),
    enabled: kind !== "fingerprint",
    retry: false,
  });

  async function find(key: string): Promise<Found & { readonly isExact: boolean }> {
    const exact = await findAll({ key });
    if (exact.records.length > 0) return { ...exact, isExact: true };
    return key === key.trim()
      ? { ...(await findAll({ keyPrefix: key })), isExact: false }
      : await find(key.trim());
  }

  function findAll(wanted: Wanted): Promise<Found> {
    return own.length > 0 ? findIn(client, wanted, own) : findRecords(client, wanted, "");
  }

  if (kind === "fingerprint") return <Redirect to={hrefOf("fingerprint", text.toLowerCase())} replace />;
  if (found.data === undefined || !namespaces.isKnown) return <Unanswered query={found} rows={2} />;
  const { records, isAll, isExact } = found.data;
  const [record] = records;
  if (record !== undefined && records.length === 1 && isExact)
    return <Redirect to={recordHref(record.namespace, record.key)} replace />;
  return (
    <section aria-label="Search" role="status">
      {namespaces.names.length > 0 && (
        <p>
          Namespaces that begin with it: <NamespaceLinks names={namespaces.names} />.
        </p>
      )}
      <p>
        {isExact ? (
          `${records.length} records have this key:`
        ) : (
          <>
            {own.length === 0 ? "No namespace has" : "None of your namespaces has"} the key{" "}
            <UserText>{text.trim()}</UserText>.{records.length > 0 && " These begin with it:"}
          </>
        )}
      </p>
      <ul>
        {records.map(({ namespace, key }) => (
          <li key={`${namespace}/${key}`}>
            <Link href={recordHref(namespace, key)}>
              <UserText>{key}</UserText>
            </Link>{" "}
            in {namespace}
          </li>
        ))}
        {!isAll && (
          <li>
            {records.length < MAX_FOUND
              ? "There may be more: not all namespaces were searched in time."
              : "There are more than these."}
          </li>
        )}
      </ul>
      {!isExact && <OtherMeanings text={text.trim()} isRequestId={kind === "request id"} />}
    </section>
  );
}

/** What a text is that is not a key. */
function OtherMeanings({ text, isRequestId }: { readonly text: string; readonly isRequestId: boolean }) {
  return (
    <ul>
      <li>
        <Link href={hrefOf("prefix", text)}>List all records whose keys begin with it</Link>
      </li>
      <li>
        <Link href={hrefOf("owner", text)}>Search records of this owner</Link>
      </li>
      {isRequestId && (
        <li>
          Which request claimed a key is not kept: the server's log has it, by this id. Changes by people are
          in the <Link href="/audit">audit</Link>.
        </li>
      )}
    </ul>
  );
}

function hrefOf(filter: string, text: string): string {
  return `/records?${new URLSearchParams({ [filter]: text })}`;
}

/** What a search needs of TenantAdminService. */
type SearchClient = Pick<Client<typeof TenantAdminService>, "listRecords">;

/** More records than a person reads beside a field; the others are found by naming the namespace. */
const MAX_FOUND = 20;
/** A page examines the server's namespaces for a second: some 100,000 in all. */
const MAX_PAGES = 5;
/** Requests at a time: a search must not use up the tenant's rate of calls. */
const PARALLEL = 4;

/** A key, or the beginning of keys. */
type Wanted = { readonly key: string } | { readonly keyPrefix: string };

/** The records of keys that were searched. */
interface Found {
  readonly records: readonly Record[];
  /** False: there may be more. */
  readonly isAll: boolean;
}

/** Returns records with the wanted keys, at most MAX_FOUND: of one namespace, or of all if `namespace` is empty. */
async function findRecords(client: SearchClient, wanted: Wanted, namespace: string): Promise<Found> {
  const records: Record[] = [];
  let pageToken = "";
  for (let page = 0; page < MAX_PAGES && records.length < MAX_FOUND; page += 1) {
    const answer = await client.listRecords({ ...wanted, namespace, pageSize: MAX_FOUND, pageToken });
    records.push(...answer.records);
    pageToken = answer.nextPageToken;
    if (pageToken === "") return { records, isAll: true };
  }
  return { records, isAll: false };
}

/** Does the same in some namespaces: those of a person who may not ask about all together. */
async function findIn(client: SearchClient, wanted: Wanted, namespaces: readonly string[]): Promise<Found> {
  const found: Found[] = [];
  for (let start = 0; start < namespaces.length; start += PARALLEL) {
    const some = namespaces.slice(start, start + PARALLEL);
    found.push(...(await Promise.all(some.map((namespace) => findRecords(client, wanted, namespace)))));
  }
  const records = found.flatMap((one) => one.records);
  return {
    records: records.slice(0, MAX_FOUND),
    isAll: found.every(({ isAll }) => isAll) && records.length <= MAX_FOUND,
  };
}
