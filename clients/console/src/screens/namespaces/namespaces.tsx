import { type FormEvent, useState } from "react";
import { Link, useLocation } from "wouter";
import { TextField } from "../../parts/field.tsx";
import { useFilters } from "../../parts/filter-bar.tsx";
import { hereWith } from "../../parts/pages.ts";
import { Screen } from "../../shell/screen.tsx";
import { DeclaredNamespaces } from "./declared-namespaces.tsx";
import { isNamespaceName } from "./namespace-name.ts";
import styles from "./namespaces.module.css";
import { UndeclaredNamespaces } from "./undeclared-namespaces.tsx";

/** The parameter of the address that chooses the list. */
const UNDECLARED = "undeclared";

/** The screen "Namespaces": the declared ones, and those that have records and are not declared. */
export default function Namespaces() {
  const { list } = useFilters(["list"]);
  const isUndeclared = list === UNDECLARED;
  return (
    <Screen
      title="Namespaces"
      lead="A namespace is for one kind of operation, such as charges. A declared one has its own policy; every other one follows the tenant's."
    >
      <div className={styles.bar}>
        <nav aria-label="Lists" className={styles.lists}>
          <Link href={hereWith("")} aria-current={isUndeclared ? undefined : "page"}>
            Declared
          </Link>
          <Link href={hereWith(`?list=${UNDECLARED}`)} aria-current={isUndeclared ? "page" : undefined}>
            Used, not declared
          </Link>
        </nav>
        <Link href="/settings">Tenant settings: what namespaces inherit</Link>
      </div>
      <OpenByName />
      {isUndeclared ? <UndeclaredNamespaces /> : <DeclaredNamespaces />}
    </Screen>
  );
}

/** Opens a namespace by its exact name: the API lists, and does not search. */
function OpenByName() {
  const [, navigate] = useLocation();
  const [problem, setProblem] = useState<string>();

  function open(event: FormEvent<HTMLFormElement>): void {
    event.preventDefault();
    const name = String(new FormData(event.currentTarget).get("name")).trim();
    if (isNamespaceName(name)) navigate(`/namespaces/${name}`);
    else setProblem("Small letters, digits, dots, hyphens and underscores: at most 63.");
  }

  return (
    <search>
      <form className={styles.open} onSubmit={open}>
        <TextField label="Open by name" name="name" problem={problem} placeholder="charges" />
        <button type="submit" data-look="plain">
          Open
        </button>
      </form>
    </search>
  );
}
