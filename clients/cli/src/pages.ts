/** The page fields of a list request. */
export interface PageRequest {
  readonly pageSize: number;
  readonly pageToken: string;
}

/** The first items of a list, and whether there are more. */
export interface Listed<Item> {
  readonly items: readonly Item[];
  readonly hasMore: boolean;
}

const MAX_PAGE_SIZE = 1000;

/** Reads pages until the end of the list or the limit. A page may be empty although more pages follow. */
export async function collectPages<Item>(
  limit: number,
  readPage: (request: PageRequest) => Promise<{ items: readonly Item[]; nextPageToken: string }>,
): Promise<Listed<Item>> {
  const items: Item[] = [];
  let pageToken = "";
  do {
    const page = await readPage({
      pageSize: Math.min(limit - items.length, MAX_PAGE_SIZE),
      pageToken,
    });
    items.push(...page.items);
    pageToken = page.nextPageToken;
  } while (pageToken !== "" && items.length < limit);
  return { items, hasMore: pageToken !== "" };
}
