import { createClient } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { useMutation } from "@tanstack/react-query";
import type { FormEvent } from "react";
import { Link, useLocation } from "wouter";
import { TextField } from "../../parts/field.tsx";
import { ErrorState } from "../../parts/list-states.tsx";
import { recordHref } from "../../parts/record-path.ts";
import { UserText } from "../../parts/user-text.tsx";
import { useSession } from "../../session/session.ts";
import { type Found, findKey, findKeyIn } from "./find-record.ts";
import styles from "./records.module.css";

/** Opens the record of a key, whichever namespace it is in; if several have it, shows them. */
export function FindForm({ namespace }: { readonly namespace: string }) {
  const transport = useTransport();
  const { namespaces: own } = useSession();
  const [, navigate] = useLocation();
  const scope =
    namespace !== "" ? `in ${namespace}` : own.length > 0 ? "in your namespaces" : "in every namespace";
  const search = useMutation({
    async mutationFn(key: string): Promise<Found> {
      const client = createClient(TenantAdminService, transport);
      return namespace === "" && own.length > 0
        ? await findKeyIn(client, key, own)
        : await findKey(client, key, namespace);
    },
    onSuccess({ records }) {
      const [record] = records;
      if (record !== undefined && records.length === 1) navigate(recordHref(record.namespace, record.key));
    },
  });

  function submit(event: FormEvent<HTMLFormElement>): void {
    event.preventDefault();
    // A key is taken as it is: spaces belong to it.
    search.mutate(String(new FormData(event.currentTarget).get("key") ?? ""));
  }

  return (
    <search className={styles.find}>
      <form onSubmit={submit}>
        <TextField label="Open the record of a key" name="key" required maxLength={255} />
        <button type="submit" data-look="plain" aria-disabled={search.isPending}>
          {search.isPending ? "Looking" : "Open"}
        </button>
        <span className={styles.scope}>{scope}</span>
      </form>
      <div role="status">
        {search.data !== undefined && (
          <FindAnswer found={search.data} typed={search.variables} namespace={namespace} scope={scope} />
        )}
      </div>
      {search.error !== null && <ErrorState error={search.error} />}
    </search>
  );
}

interface FindAnswerProps {
  readonly found: Found;
  /** The key that was looked for. */
  readonly typed: string;
  readonly namespace: string;
  /** Such as "in every namespace". */
  readonly scope: string;
}

function FindAnswer({ found: { records, isAll }, typed, namespace, scope }: FindAnswerProps) {
  const limit = isAll ? "" : " There may be more: name the namespace in the filter.";
  if (records.length === 0) {
    const begins = new URLSearchParams({ prefix: typed, ...(namespace !== "" && { namespace }) });
    return (
      <p>
        {scope === "in every namespace" ? "No namespace has" : `There is no record ${scope} of`} the key{" "}
        <UserText>{typed}</UserText>.{limit}{" "}
        <Link href={`/records?${begins}`}>Search keys that begin with it</Link>
      </p>
    );
  }
  if (records.length === 1) return undefined;
  return (
    <p>
      {`${records.length} records have this key, in `}
      {records.map(({ namespace, key }, index) => (
        <span key={namespace}>
          {index > 0 && ", "}
          <Link href={recordHref(namespace, key)}>{namespace}</Link>
        </span>
      ))}
      {`.${limit}`}
    </p>
  );
}
