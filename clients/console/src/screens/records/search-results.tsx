import { createClient } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { useQuery } from "@tanstack/react-query";
import { Link, Redirect } from "wouter";
import { Unanswered } from "../../parts/list-states.tsx";
import { recordHref } from "../../parts/record-path.ts";
import { UserText } from "../../parts/user-text.tsx";
import { useSession } from "../../session/session.ts";
import { type Found, findKey, findKeyIn } from "./find-record.ts";
import { looksLike } from "./looks-like.ts";

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
