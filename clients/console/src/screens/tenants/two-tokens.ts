/** No page token has this character: they are base64url. */
const SEPARATOR = "~";

/** Returns one token for the address, of the next pages of two lists with the same rows; "" after the last page. */
export function joinTokens(first: string, second: string): string {
  return first === "" && second === "" ? "" : `${first}${SEPARATOR}${second}`;
}

/** Returns the tokens of the two lists; both "" for the first page. */
export function splitTokens(token: string): readonly [string, string] {
  const [first = "", second = ""] = token.split(SEPARATOR);
  return [first, second];
}
