import { posix } from "node:path";

/**
 * Code, in which nothing is a link (fenced, or within a line); or a link to a file beside the page: neither an address nor an
 * anchor of the page.
 */
const CODE_OR_LINK =
  /^ {0,3}```[\s\S]*?^ {0,3}```|`[^`\n]*`|\[([^\]]*)\]\((?![a-z]+:|#|\/)([^)#\s]+)(#[^)\s]*)?\)/gm;

/** Where the files of a released commit can be read. */
export interface Source {
  /** The `repository` of the root package.json: the address of the repository's page. Undefined: it has none. */
  readonly repositoryUrl: string | undefined;
  readonly commit: string;
}

/**
 * Returns a README for a registry's page, where links to files beside it lead nowhere: they become links to the released
 * commit, or, without a page of the repository, the paths of the files.
 *
 * @param folder the README's folder, from the root of the repository.
 */
export function releasedReadme(text: string, folder: string, { repositoryUrl, commit }: Source): string {
  return text.replaceAll(CODE_OR_LINK, (found, label?: string, target?: string, anchor = "") => {
    if (label === undefined || target === undefined) return found;
    const path = posix.join(folder, target);
    if (repositoryUrl !== undefined) return `[${label}](${repositoryUrl}/blob/${commit}/${path}${anchor})`;
    return path.endsWith(label.replaceAll("`", "")) ? `\`${path}\`` : `${label} (\`${path}\`)`;
  });
}

/** Returns the files that a README's links name: links that lead nowhere on a registry's page. */
export function relativeLinks(readme: string): readonly string[] {
  return [...readme.matchAll(CODE_OR_LINK)].flatMap(([, , target]) => target ?? []);
}
