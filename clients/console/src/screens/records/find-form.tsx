import { createClient } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import type { Record } from "@onceward/gen/onceward/v1/record_pb.ts";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { useMutation } from "@tanstack/react-query";
import type { FormEvent } from "react";
import { Link, useLocation } from "wouter";
import { formatNoun } from "../../format/quantity.ts";
import { TextField } from "../../parts/field.tsx";
import { ErrorState } from "../../parts/list-states.tsx";
import { recordHref } from "../../parts/record-path.ts";
import { useSession } from "../../session/session.ts";
import { findByKey, namespacesOf } from "./find-record.ts";
import styles from "./records.module.css";

interface Answer {
  readonly records: readonly Record[];
  readonly searched: number;
  readonly isAll: boolean;
}

/** Opens the record of a key, whichever namespace it is in; if several have it, shows them. */
export function FindForm({ namespace }: { readonly namespace: string }) {
  const transport = useTransport();
  const { namespaces: own } = useSession();
  const [, navigate] = useLocation();
  const search = useMutation({
    async mutationFn(key: string): Promise<Answer> {
      const client = createClient(TenantAdminService, transport);
      const { names, isAll } =
        namespace !== ""
          ? { names: [namespace], isAll: true }
          : own.length > 0
            ? { names: own, isAll: true }
            : await namespacesOf(client);
      const records = await findByKey(client, key, names);
      return { records, isAll, searched: names.length };
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
        <button type="submit" aria-disabled={search.isPending}>
          {search.isPending ? "Looking" : "Open"}
        </button>
        <span className={styles.scope}>{namespace === "" ? "in every namespace" : `in ${namespace}`}</span>
      </form>
      <div role="status">{search.data !== undefined && <FindAnswer answer={search.data} />}</div>
      {search.error !== null && <ErrorState error={search.error} />}
    </search>
  );
}

function FindAnswer({ answer: { records, searched, isAll } }: { readonly answer: Answer }) {
  const where = formatNoun(searched, "namespace", "namespaces");
  const limit = isAll ? "" : " There are more: name the namespace in the filter.";
  if (records.length === 0) return <p>{`No record has exactly this key in ${where}.${limit}`}</p>;
  if (records.length === 1) return undefined;
  return (
    <p>
      {`${records.length} of ${where} have this key: `}
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
