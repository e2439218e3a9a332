/** The page that is shown after a sign-in. */
export const HOME = "/console/";

/** Longer than every path with filters. */
const MAX_LENGTH = 2000;
/** The address that relative ones are resolved against: a text that leads to another one is refused. */
const BASE = "http://console.invalid";

/**
 * Returns the path to which a person returns after a sign-in: a page of the console, as the URL parser of browsers
 * understands the text. Returns HOME for any other text, so that no link leads through a sign-in to another site.
 */
export function returnPath(text: string | null | undefined): string {
  if (!text?.startsWith(HOME) || text.length > MAX_LENGTH || !URL.canParse(text, BASE)) return HOME;
  const { origin, pathname, search, hash } = new URL(text, BASE);
  const isPage = origin === BASE && pathname.startsWith(HOME) && !pathname.startsWith("/console/api/");
  return isPage ? `${pathname}${search}${hash}` : HOME;
}
