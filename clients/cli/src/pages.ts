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

/** A page of a list: the reply of an RPC, whose items are in the field of this name. */
type Page<Name extends string> = Readonly<Record<Name, readonly unknown[]>> & {
  readonly nextPageToken: string;
};

/** Reads pages until the end of the list or the limit. A page may be empty although more pages follow. */
export async function collectPages<Name extends string, Reply extends Page<Name>>(
  limit: number,
  name: Name,
  readPage: (request: PageRequest) => Promise<Reply>,
): Promise<Listed<Reply[Name][number]>> {
  const items: Reply[Name][number][] = [];
  let pageToken = "";
  do {
    const page = await readPage({ pageSize: Math.min(limit - items.length, MAX_PAGE_SIZE), pageToken });
    items.push(...page[name]);
    pageToken = page.nextPageToken;
  } while (pageToken !== "" && items.length < limit);
  return { items, hasMore: pageToken !== "" };
}
