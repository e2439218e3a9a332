import type { DescMessage, DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf";
import { useQuery } from "@connectrpc/connect-query";
import { keepPreviousData, type UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { useLiveInterval } from "../shell/live.ts";
import styles from "../styles/parts.module.css";
import { CliHint } from "./copy-button.tsx";
import { Empty, Unanswered } from "./list-states.tsx";
import { hereWith, pageHref, usePageToken } from "./pages.ts";

/**
 * Asks for the page of a list that the address names, of the server's size unless the request says another one, and shows the page
 * before until it is answered.
 *
 * @param refreshMs how often it is asked for again while the page is live; 0: never.
 */
export function usePage<I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
  refreshMs = 0,
) {
  const { token } = usePageToken();
  const input = { ...request, pageToken: token } as MessageInitShape<I>;
  const refetchInterval = useLiveInterval(refreshMs);
  return useQuery(method, input, { refetchInterval, placeholderData: keepPreviousData });
}

interface ListProps<Page> {
  /** From `usePage`, or as it. */
  readonly page: Pick<UseQueryResult<Page>, "data" | "error" | "refetch" | "isPlaceholderData">;
  /** How many rows there are room for until they arrive. */
  readonly rows: number;
  /** Whether a page shows nothing. */
  readonly isEmpty: (page: Page) => boolean;
  /** Shown instead of the only page, or the last one, if it shows nothing: a sentence, or an `Empty` with another command. */
  readonly empty: ReactNode;
  /** The command that lists the same; undefined: not shown. */
  readonly command?: string;
  readonly children: (page: Page) => ReactNode;
}

/** A page of a list in each of its states, the links to the other pages, and the command line that shows the same. */
export function List<Page extends { readonly nextPageToken: string }>(props: ListProps<Page>) {
  const { page, rows, isEmpty, empty, command, children } = props;
  const { data } = page;
  if (data === undefined) return <Unanswered query={page} rows={rows} />;
  const isNone = data.nextPageToken === "" && isEmpty(data);
  return (
    <div aria-busy={page.isPlaceholderData}>
      {isNone && (typeof empty === "string" ? <Empty {...(command && { command })}>{empty}</Empty> : empty)}
      {!isNone && children(data)}
      <Pager nextPageToken={data.nextPageToken} />
      {!isNone && command !== undefined && <CliHint command={command} />}
    </div>
  );
}

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
