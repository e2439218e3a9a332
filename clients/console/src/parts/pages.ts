import { useSearch } from "wouter";

/** The parameter of the address that holds a page's token. */
export const PAGE_PARAMETER = "page";

/** Returns the query of the address as it is: the router decodes its own copy, and a "%" in a key would be decoded twice. */
export function useQueryText(): string {
  useSearch();
  return window.location.search.slice(1);
}

/** Returns the page token of the address, for a request's `pageToken`; empty: the first page. */
export function usePageToken(): { readonly token: string; readonly search: string } {
  const search = useQueryText();
  return { token: new URLSearchParams(search).get(PAGE_PARAMETER) ?? "", search };
}

/** Returns the query of another page of the same list: the filters stay. */
export function pageHref(search: string, token: string): string {
  return `?${withParameters(search, { [PAGE_PARAMETER]: token })}`;
}

/**
 * Returns the link to this screen with another query, such as "?state=done"; empty: without one. The router puts its base before
 * every link but those that begin with "~", so a query alone would lead to the first screen.
 */
export function hereWith(query: string): string {
  return `~${window.location.pathname}${query}`;
}

/** Returns a query with some parameters changed; empty values are removed. A new filter begins at the first page. */
export function withParameters(search: string, changes: Readonly<Record<string, string>>): string {
  const parameters = new URLSearchParams(search);
  if (!(PAGE_PARAMETER in changes)) parameters.delete(PAGE_PARAMETER);
  for (const [name, value] of Object.entries(changes)) {
    if (value === "") parameters.delete(name);
    else parameters.set(name, value);
  }
  return parameters.toString();
}

/**
 * Reads a list by pages, at most `max` rows; `isCut`: there are more. `progressed` gets the count after each page.
 *
 * @throws what `fetchPage` throws.
 */
export async function readPages<Page extends { readonly nextPageToken: string }, Row>(
  fetchPage: (pageToken: string) => Promise<Page>,
  rowsOf: (page: Page) => readonly Row[],
  { max, progressed }: { readonly max: number; readonly progressed?: (count: number) => void },
) {
  const rows: Row[] = [];
  let pageToken = "";
  do {
    const page = await fetchPage(pageToken);
    rows.push(...rowsOf(page));
    pageToken = page.nextPageToken;
    progressed?.(Math.min(rows.length, max));
  } while (pageToken !== "" && rows.length < max);
  return { rows: rows.slice(0, max), isCut: pageToken !== "" || rows.length > max };
}
