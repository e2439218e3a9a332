import { execFileSync } from "node:child_process";
import { copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readCommandLine } from "../../server/dev/command-line.ts";
import { apiReference } from "./api-reference.ts";
import { GROUPS } from "./pages.ts";
import { stagePages } from "./stage.ts";

const USAGE = `npm run docs -- [OPTIONS]: builds the site into deploy/site/dist/ from the Markdown of the repository and the
proto files. It installs the generator first, which is 100 MB that nothing else needs.
  --base /PATH/  the folder of a web server that the site is for; default: /, its root`;

const SITE = fileURLToPath(new URL(".", import.meta.url));
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const STAGE = join(SITE, ".build");
const { base } = readCommandLine(USAGE, { options: { base: { type: "string", default: "/" } } }).values;

execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: SITE, stdio: "inherit" });
await rm(STAGE, { recursive: true, force: true });
await mkdir(STAGE, { recursive: true });
await writeFile(
  join(STAGE, "api.md"),
  apiReference(join(ROOT, "node_modules/.bin/buf"), join(ROOT, "proto")),
);
const { repository } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8"));
const pages = GROUPS.flatMap((group) => group.pages);
await stagePages(pages, { root: ROOT, target: STAGE, repository });
await copyFile(join(ROOT, "clients/console/src/styles/icon.svg"), join(STAGE, "public/logo.svg"));
execFileSync(
  process.execPath,
  [join(SITE, "node_modules/vitepress/bin/vitepress.js"), "build", SITE, "--base", base],
  {
    stdio: "inherit",
  },
);
await writeTextPages();

/** Adds each page as Markdown, and `llms.txt`, which lists them, for readers that are programs: llmstxt.org. */
async function writeTextPages(): Promise<void> {
  const dist = join(SITE, "dist");
  for (const { slug } of pages) {
    const text = await readFile(join(STAGE, `${slug}.md`), "utf8");
    await writeFile(join(dist, `${slug}.md`), linkToText(text));
  }
  const lists = GROUPS.map(({ title, pages: listed }) =>
    [
      `## ${title}`,
      "",
      ...listed.map((page) => `- [${page.title}](${base}${page.slug}.md): ${page.about}`),
    ].join("\n"),
  );
  const about =
    "> Idempotency as a service: ask before a side effect, report afterwards, and it happens once.";
  await writeFile(join(dist, "llms.txt"), `${["# Onceward", about, ...lists].join("\n\n")}\n`);
}

/** Returns a page whose links lead to the other pages as Markdown, and whose links and pictures are below the base. */
function linkToText(text: string): string {
  const slugs = new Set(pages.map(({ slug }) => slug));
  return text.replace(
    /(\]\(|src(?:set)?=")\/([^)#"\s]*)/g,
    (_, before: string, path: string) => `${before}${base}${path}${slugs.has(path) ? ".md" : ""}`,
  );
}
