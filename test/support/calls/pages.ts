/** A page of a list. */
export interface Page<Item> {
  readonly items: readonly Item[];
  readonly nextPageToken: string;
}

/** A list with more pages is endless. */
const MAX_PAGES = 1000;

/** Returns the items of all pages of a list, starting with the page of a token. */
export async function readPages<Item>(
  list: (pageToken: string) => Promise<Page<Item>>,
  firstToken = "",
): Promise<Item[]> {
  const items: Item[] = [];
  let pageToken = firstToken;
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const page = await list(pageToken);
    items.push(...page.items);
    if (page.nextPageToken === "") return items;
    pageToken = page.nextPageToken;
  }
  throw new Error(`more than ${MAX_PAGES} pages`);
}
