/** The rows of a list, read page by page. */
export interface ReadRows<Row> {
  readonly rows: readonly Row[];
  /** Whether the list goes on. */
  readonly isCut: boolean;
}

/**
 * Reads a list by pages, at most `max` rows. `progressed` gets the count after each page.
 *
 * @throws what `fetchPage` throws.
 */
export async function readPages<Page extends { readonly nextPageToken: string }, Row>(
  fetchPage: (pageToken: string) => Promise<Page>,
  rowsOf: (page: Page) => readonly Row[],
  { max, progressed }: { readonly max: number; readonly progressed?: (count: number) => void },
): Promise<ReadRows<Row>> {
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
