import { Link } from "wouter";
import styles from "../styles/parts.module.css";
import { hereWith, pageHref, usePageToken } from "./pages.ts";

/**
 * Leads to the next page, and to the first one. The token is in the address: Back leads to the page before, and a page
 * can be shared while its token is valid.
 */
export function Pager({ nextPageToken }: { readonly nextPageToken: string }) {
  const { token, search } = usePageToken();
  if (token === "" && nextPageToken === "") return undefined;
  return (
    <nav aria-label="Pages" className={styles.pager}>
      {token !== "" && <Link href={hereWith(pageHref(search, ""))}>First page</Link>}
      {nextPageToken !== "" ? (
        <Link href={hereWith(pageHref(search, nextPageToken))}>Next page</Link>
      ) : (
        <span>Last page</span>
      )}
    </nav>
  );
}
