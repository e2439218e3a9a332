import { readFile } from "node:fs/promises";

/**
 * Returns the code blocks of some languages in a page, which is named from the repository's root, in their order.
 */
export async function codeBlocks(
  readme: string,
  ...languages: readonly string[]
): Promise<readonly string[]> {
  const text = await readFile(new URL(`../../../${readme}`, import.meta.url), "utf8");
  const blocks = text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm);
  return [...blocks].flatMap(([, of, code = ""]) => (languages.includes(`${of}`) ? [code] : []));
}

/** Returns the first code block of a language in a page. @throws if there is none. */
export async function firstBlock(readme: string, language: string): Promise<string> {
  const [first] = await codeBlocks(readme, language);
  if (first === undefined) throw new Error(`${readme} has no ${language}`);
  return first;
}
