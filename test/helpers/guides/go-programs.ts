import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { codeBlocks } from "../processes/readme.ts";

const GUIDES = "clients/typescript/guides";
const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const CHECKS = fileURLToPath(new URL("guides_test.go", import.meta.url));
const CLIENT = "github.com/onceward/onceward/clients/go/onceward";
/** What the snippets import, by the name that they use. */
const IMPORTS: Readonly<Record<string, string>> = {
  context: "context",
  errors: "errors",
  http: "net/http",
  log: "log",
  onceward: CLIENT,
  oncewardinbox: `${CLIENT}/oncewardinbox`,
  signal: "os/signal",
  sql: "database/sql",
  sync: "sync",
  syscall: "syscall",
  time: "time",
};

/**
 * Writes the guides' Go snippets and their checks into a folder, as one package: a file for each page.
 *
 * @returns the names of the pages that have snippets in TypeScript, and of those that have as many in Go.
 */
export async function writeGoSnippets(
  dir: string,
): Promise<{ typescript: readonly string[]; go: readonly string[] }> {
  const pages = { typescript: [] as string[], go: [] as string[] };
  for (const page of (await readdir(join(ROOT, GUIDES))).sort()) {
    const snippets = await codeBlocks(`${GUIDES}/${page}`, "go");
    const typescript = await codeBlocks(`${GUIDES}/${page}`, "ts");
    if (typescript.length > 0) pages.typescript.push(page);
    if (snippets.length === 0) continue;
    if (snippets.length === typescript.length) pages.go.push(page);
    await writeFile(join(dir, page.replaceAll("-", "_").replace(".md", "_guide.go")), fileOf(snippets));
  }
  await writeFile(join(dir, "guides_test.go"), await readFile(CHECKS));
  return pages;
}

function fileOf(snippets: readonly string[]): string {
  const text = snippets.join("\n");
  const used = Object.entries(IMPORTS).filter(([name]) => new RegExp(`\\b${name}\\.[A-Z]`).test(text));
  const imports = used.map(([, path]) => `\t"${path}"\n`).sort();
  return `package guides\n\nimport (\n${imports.join("")})\n\n${text}`;
}
