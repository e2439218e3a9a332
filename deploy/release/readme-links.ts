import { posix } from "node:path";

/**
 * Code, in which nothing is a link (fenced, or within a line); or a link to a file beside the page: neither an address nor an
 * anchor of the page.
 */
const CODE_OR_LINK =
  /^ {0,3}```[\s\S]*?^ {0,3}```|`[^`\n]*`|\[([^\]]*)\]\((?![a-z]+:|#|\/)([^)#\s]+)(#[^)\s]*)?\)/gm;

/** Where the files of a released commit can be read. */
export interface Source {
  /** The address of the repository's page. */
  readonly repositoryUrl: string;
  readonly commit: string;
}

/**
 * Returns a README for a registry's page, where links to files beside it lead nowhere: they become links to the released commit.
 *
 * @param folder the README's folder, from the root of the repository.
 */
export function releasedReadme(text: string, folder: string, { repositoryUrl, commit }: Source): string {
  return text.replaceAll(CODE_OR_LINK, (found, label?: string, target?: string, anchor = "") => {
    if (label === undefined || target === undefined) return found;
    return `[${label}](${repositoryUrl}/blob/${commit}/${posix.join(folder, target)}${anchor})`;
  });
}

/** Returns the files that a README's links name: links that lead nowhere on a registry's page. */
export function relativeLinks(readme: string): readonly string[] {
  return [...readme.matchAll(CODE_OR_LINK)].flatMap(([, , target]) => target ?? []);
}
