/** `npm run lab -- sql [NAME]`: prints the final text of each statement, or of one, for `explain`. */
import { readdir, readFile } from "node:fs/promises";
import { registerHooks } from "node:module";
import type { Statement } from "../../server/src/database/pool.ts";

const SOURCE = new URL("../../server/src/", import.meta.url);
/** A constant of a source file that is a statement, or has several. Most are private to their file. */
const STATEMENT = /^(?:export )?const (\w+)(?:: [^=]+)? = \{$(?=[^;]*\bname: )/gm;

const texts = new Map<string, string>();
Object.assign(globalThis, {
  noteStatement(constant: object) {
    // A check of doctor has a name, too.
    for (const each of [constant, ...Object.values(constant)] as (Partial<Statement> | undefined)[])
      if (each?.name !== undefined && typeof each.text === "string") texts.set(each.name, each.text.trim());
  },
});
registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    if (!url.startsWith(SOURCE.href)) return loaded;
    const source = String(loaded.source);
    const notes = Array.from(source.matchAll(STATEMENT), ([, constant]) => `noteStatement(${constant});`);
    return { ...loaded, source: `${source}\n${notes.join("\n")}` };
  },
});

const [only] = process.argv.slice(2);
for (const file of await readdir(SOURCE, { recursive: true })) {
  if (!/(?<!\.test)\.ts$/.test(file)) continue;
  const url = new URL(file, SOURCE);
  if ((await readFile(url, "utf8")).match(STATEMENT)) await import(url.href);
}
if (only !== undefined && !texts.has(only)) throw new Error(`There is no statement "${only}".`);
for (const [name, text] of [...texts].sort())
  if (only === undefined || name === only) process.stdout.write(`-- ${name}\n${text};\n\n`);
