import type { FormEvent, ReactNode } from "react";
import { useLocation, useSearch } from "wouter";
import styles from "./filter-bar.module.css";
import { hereWith, withParameters } from "./pages.ts";

/**
 * A form whose fields' names and values become the address's query, so that a filtered list can be shared. Fields take
 * `defaultValue` from `useFilters()`.
 */
export function FilterBar({ children }: { readonly children: ReactNode }) {
  const search = useSearch();
  const [, navigate] = useLocation();

  function submit(event: FormEvent<HTMLFormElement>): void {
    event.preventDefault();
    const changes: Record<string, string> = {};
    for (const [name, value] of new FormData(event.currentTarget)) {
      if (typeof value === "string") changes[name] = value.trim();
    }
    const query = withParameters(search, changes);
    navigate(hereWith(query === "" ? "" : `?${query}`));
  }

  return (
    <search>
      {/* The key builds the fields again when the address changes by Back or a link. */}
      <form key={search} className={styles.bar} onSubmit={submit}>
        {children}
        <div className={styles.buttons}>
          <button type="submit">Filter</button>
          {search !== "" && (
            <button type="button" onClick={() => navigate(hereWith(""))}>
              Clear
            </button>
          )}
        </div>
      </form>
    </search>
  );
}

/** Returns the filters of the address; a name that it does not have is "". */
export function useFilters<Name extends string>(names: readonly Name[]): Readonly<Record<Name, string>> {
  const parameters = new URLSearchParams(useSearch());
  const filters = {} as Record<Name, string>;
  for (const name of names) filters[name] = parameters.get(name) ?? "";
  return filters;
}
