import { Fragment } from "react";
import { Link } from "wouter";

/** Links to namespaces, or to a field of their policies, with commas between them. */
export function NamespaceLinks({ names, field }: { names: readonly string[]; field?: string }) {
  return names.map((name, index) => (
    <Fragment key={name}>
      {index > 0 && ", "}
      <Link href={`/namespaces/${name}${field === undefined ? "" : `#${field}`}`}>{name}</Link>
    </Fragment>
  ));
}
