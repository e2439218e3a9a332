/**
 * Returns the section of a version, without its heading.
 *
 * @throws Error if there is none or if it is empty.
 */
export function changelogSection(changelog: string, version: string): string {
  const [, ...sections] = changelog.split(/^## /m);
  const section = sections.find((text) => text.split("\n", 1)[0]?.split(" ")[0] === version);
  const body = section?.slice(section.indexOf("\n")).trim() ?? "";
  if (body === "") throw new Error(`CHANGELOG.md has no section "## ${version}" with contents`);
  return `${body}\n`;
}
