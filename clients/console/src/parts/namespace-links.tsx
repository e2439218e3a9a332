import { Fragment } from "react";
import { Link } from "wouter";
import { useSimilarNames } from "./namespace-names.ts";
import { StateMark } from "./state-mark.tsx";

/** Links to namespaces, or to a field of their policies, with commas between them. */
export function NamespaceLinks({ names, field }: { names: readonly string[]; field?: string }) {
  return names.map((name, index) => (
    <Fragment key={name}>
      {index > 0 && ", "}
      <Link href={`/namespaces/${name}${field === undefined ? "" : `#${field}`}`}>{name}</Link>
    </Fragment>
  ));
}

/** Warns of an undeclared name that is similar to a declared one, and says what to do. */
export function MisspeltNote({ name }: { readonly name: string }) {
  const similar = useSimilarNames()(name);
  if (similar === undefined) return undefined;
  return (
    <p>
      <StateMark tone="attention" word={`Similar to ${similar}`} /> If <NamespaceLinks names={[similar]} /> is
      meant, correct the name in the caller: one key in both namespaces is two operations.
    </p>
  );
}
