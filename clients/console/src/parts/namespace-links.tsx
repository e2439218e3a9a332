import { Fragment } from "react";
import { Link } from "wouter";

/** Links to namespaces, with commas between them. */
export function NamespaceLinks({ names }: { readonly names: readonly string[] }) {
  return names.map((name, index) => (
    <Fragment key={name}>
      {index > 0 && ", "}
      <Link href={`/namespaces/${name}`}>{name}</Link>
    </Fragment>
  ));
}
