/** A list with more pages is endless. */
const MAX_PAGES = 1000;

type Page<Name extends string> = Readonly<Record<Name, readonly unknown[]>> & { nextPageToken: string };

/** Returns what the field `name` of all pages of a list has, starting with the page of a token. */
export async function readPages<Name extends string, Reply extends Page<Name>>(
  name: Name,
  list: (pageToken: string) => Promise<Reply>,
  firstToken = "",
): Promise<Reply[Name][number][]> {
  const items: Reply[Name][number][] = [];
  let pageToken = firstToken;
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const page = await list(pageToken);
    items.push(...page[name]);
    if (page.nextPageToken === "") return items;
    pageToken = page.nextPageToken;
  }
  throw new Error(`more than ${MAX_PAGES} pages`);
}
