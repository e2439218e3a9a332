import type { Visited } from "./record-way.ts";

const TABLE = /(<!-- way of a claim:.*-->\n)([\s\S]*?)(<!-- \/way of a claim -->)/;
const ROW = /^\| `(.+\.ts)` \| (\d+) \| (.+) \|$/gm;

/** A row of the table: a file, and its part in the call, which a person wrote. */
export interface WayRow extends Visited {
  readonly part: string;
}

/** Returns the rows of the way in `server/README.md`. */
export function readWay(readme: string): readonly WayRow[] {
  const [, , table = ""] = TABLE.exec(readme) ?? [];
  return [...table.matchAll(ROW)].map(([, file = "", entries, part = ""]) => ({
    file,
    entries: Number(entries),
    part,
  }));
}

/**
 * Returns the README with these files as its way, each with the part that the README has for it.
 *
 * @throws Error if it has none: add a row for the file.
 */
export function withWay(readme: string, visited: readonly Visited[]): string {
  const parts = new Map(readWay(readme).map(({ file, part }) => [file, part]));
  const rows = visited.map(({ file, entries }) => {
    const part = parts.get(file);
    if (part === undefined)
      throw new Error(`server/README.md: add ${file} to the way of a claim, with its part and any number`);
    return `| \`${file}\` | ${entries} | ${part} |`;
  });
  const table = ["| file | entered | its part |", "|---|---|---|", ...rows].join("\n");
  return readme.replace(TABLE, (_, begin: string, __, end: string) => `${begin}\n${table}\n\n${end}`);
}
