import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { GROUPS } from "../../../deploy/site/pages.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** Text that a page tells its reader to type. */
export interface Typed {
  readonly page: string;
  /** The text of a block, or of one command in a sentence. */
  readonly text: string;
  /** A command in a sentence may lack arguments. */
  readonly isInline: boolean;
}

/** Programs whose name in a sentence begins a command. Go's statement `go f()` is none. */
const INLINE =
  /^(?:\w+=\S+ )*(?:docker|kubectl|helm|npm|npx|pip|go(?! \w+\.)|onceward|onceward-server|cosign|gh|git|curl|sh|mvn) \S/;

/** Returns the Markdown pages: all of the site, and every other of the repository, whose past the changelog is not. */
export function pagesWithCommands(): readonly string[] {
  const all = execFileSync("git", ["ls-files", "*.md"], { cwd: ROOT, encoding: "utf8" }).trim().split("\n");
  const ofSite = GROUPS.flatMap(({ pages }) => pages.map(({ source }) => source));
  const pages = new Set([...all, ...ofSite.filter((source) => /^(?!.*\.build).*\.md$/.test(source))]);
  pages.delete("CHANGELOG.md");
  return [...pages].toSorted();
}

/** Returns all that a page tells to type: its blocks, then the commands in its sentences. */
export function typedOn(page: string): readonly Typed[] {
  const text = readFileSync(`${ROOT}${page}`, "utf8");
  const block = /^( *)```(\w*)\n([\s\S]*?)^ *```$/gm;
  const blocks = [...text.matchAll(block)].flatMap(([, indent = "", language = "", code = ""]) =>
    ["sh", "bash", "shell", "console"].includes(language)
      ? [{ page, text: code.replaceAll(new RegExp(`^${indent}`, "gm"), "").trim(), isInline: false }]
      : [],
  );
  const inline = [...text.replaceAll(block, "").matchAll(/`([^`]+)`/g)]
    .map(([, code = ""]) => code.replaceAll(/\s+/g, " "))
    .filter((code) => INLINE.test(code))
    .map((code) => ({ page, text: code, isInline: true }));
  return [...blocks, ...inline];
}
