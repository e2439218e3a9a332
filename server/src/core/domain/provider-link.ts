/** Long enough for a provider's search with filters; every namespace with a policy keeps its link in memory. */
const MAX_BYTES = 512;

const PLACEHOLDERS = /\{(?:key|owner)\}/g;

/**
 * Returns what is wrong with a link to a provider, such as "https://pay.example/search?q={key}"; undefined: nothing. A placeholder may
 * not be part of the host: a key that a caller chose would lead to a site that the caller chose.
 */
export function providerLinkProblem(link: string): string | undefined {
  if (link.length > MAX_BYTES) return `must have at most ${MAX_BYTES} bytes`;
  if (!/^[!-~]+$/.test(link)) return "must have printable ASCII characters only, without spaces";
  const isFilled = link.includes("{key}") && !/[{}]/.test(link.replace(PLACEHOLDERS, ""));
  if (!isFilled) return "must have {key}, may have {owner}, and no other braces";
  const [one, other] = ["a", "b"].map((text) => URL.parse(link.replace(PLACEHOLDERS, text)));
  if (one?.protocol !== "https:" || one.username !== "" || one.password !== "")
    return "must be an https URL without a user";
  return one.host === other?.host ? undefined : "must have its placeholders after the host";
}
