import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { LAB } from "../lab/main.ts";
import { oncewardProblem, serverProblem } from "../support/pages/onceward.ts";
import { commandsOf, type Words } from "../support/pages/shell.ts";
import { EXAMPLES } from "../tools/example.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const PAGES = execFileSync("git", ["ls-files", "*.md"], { cwd: ROOT, encoding: "utf8" }).trim().split("\n");
const { scripts } = JSON.parse(read("package.json"));

interface Tested {
  readonly page: string;
  /** The test that types the commands of the page's blocks. */
  readonly by: string;
  /** The beginnings of the blocks that it types; all, if absent. */
  readonly blocks?: readonly string[];
}

const TESTED: readonly Tested[] = [
  { page: "clients/cli/operators.md", by: "test/commands/readme.test.ts" },
  { page: "clients/cli/tenant-admins.md", by: "test/commands/readme.test.ts" },
  {
    page: "clients/README.md",
    by: "test/commands/other-languages.test.ts",
    blocks: ["grpcurl ", "mvn "],
  },
  { page: "clients/go/README.md", by: "test/commands/go-client.test.ts" },
  {
    page: "clients/typescript/guides/http.md",
    by: "test/packaging/first-example.test.ts",
    blocks: ["curl "],
  },
  { page: "deploy/helm/onceward/README.md", by: "test/deploy/chart-page.test.ts" },
  { page: "deploy/observability.md", by: "test/deploy/runbook.test.ts" },
  {
    page: "deploy/README.md",
    by: "test/commands/systemd.test.ts",
    blocks: ["cd /opt/onceward/", "ln -sfn VERSION "],
  },
  { page: "deploy/recovery.md", by: "test/commands/recovery.test.ts" },
  { page: "deploy/regions.md", by: "test/commands/recovery.test.ts" },
  { page: "deploy/runbook.md", by: "test/deploy/runbook.test.ts" },
  { page: "deploy/upgrade.md", by: "test/commands/upgrade.test.ts", blocks: ["onceward-server migrate"] },
];

function read(path: string): string {
  return readFileSync(`${ROOT}${path}`, "utf8");
}

const BLOCK = /^( *)```(\w*)\n([\s\S]*?)^ *```$/gm;

/** Returns the blocks of a page that its reader types. */
function blocksOf(page: string): readonly string[] {
  return [...read(page).matchAll(BLOCK)].flatMap(([, indent = "", language = "", code = ""]) =>
    ["sh", "bash", "shell", "console"].includes(language)
      ? [code.replaceAll(new RegExp(`^${indent}`, "gm"), "").trim()]
      : [],
  );
}

/** Returns the commands of our programs that a page's sentences name. */
function mentionsOf(page: string): readonly string[] {
  return [
    ...read(page)
      .replaceAll(BLOCK, "")
      .matchAll(/`(onceward(?:-server)?\s[^`]+)`/g),
  ].map(([, code = ""]) => code.replaceAll(/\s+/g, " "));
}

/** Returns what is wrong with a command of one of our programs; other programs' are not checked. */
async function problemOf(words: Words, isInline: boolean): Promise<string | undefined> {
  if (words[0] === "onceward") return oncewardProblem(words.slice(1), isInline);
  const at = words.findIndex((word, index) =>
    index === 0 ? word === "onceward-server" : /(^|\/)server\/(dist\/main\.js|src\/main\.ts)$/.test(word),
  );
  return at === -1 ? undefined : serverProblem(words.slice(at + 1));
}

test.each(TESTED)("$by types commands of $page", ({ page, by, blocks = [] }) => {
  expect(read(by)).toContain(`"${page}"`);
  const texts = blocksOf(page);
  expect(texts.length).toBeGreaterThan(0);
  for (const start of blocks) expect(texts.some((text) => text.startsWith(start))).toBe(true);
});

test.each(PAGES)("the commands of Onceward and the npm scripts on %s exist", async (page) => {
  const named = [...read(page).matchAll(/\bnpm run ([a-z][\w:-]*)(?: -- ([a-z][\w/]*))?/g)];
  expect(named.filter(([, script = ""]) => !(script in scripts)).map(([text]) => text)).toEqual([]);
  const programs: Readonly<Record<string, readonly string[]>> = { lab: Object.keys(LAB), example: EXAMPLES };
  const missing = named.filter(
    ([, script = "", name]) => name !== undefined && programs[script]?.includes(name) === false,
  );
  expect(missing.map(([text]) => text)).toEqual([]);
  const typed = blocksOf(page).flatMap((text) => commandsOf(text).map((words) => [words, false] as const));
  const mentioned = mentionsOf(page).flatMap((text) =>
    commandsOf(text).map((words) => [words, true] as const),
  );
  const problems: string[] = [];
  for (const [words, isInline] of [...typed, ...mentioned]) {
    const problem = await problemOf(words, isInline);
    if (problem !== undefined) problems.push(`${words.join(" ")}: ${problem}`);
  }
  expect(problems).toEqual([]);
});
