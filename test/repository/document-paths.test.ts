import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** `[text](target)`; the text may have a line break. */
const LINK = /\]\(([^()\s]+)\)/g;
const HEADING = /^#+ +(.+)$/gm;
const CODE_BLOCK = /^```[\s\S]*?^```$/gm;
/** A path from the root in backticks. Braces and asterisks stand for several files. */
const ROOT_PATH = /`((?:server|clients|test|proto|deploy)\/[^`\s]*)`/g;

const DOCUMENTS = await listDocuments();

async function listDocuments(): Promise<readonly string[]> {
  const { stdout } = await run("git", ["ls-files", "--cached", "--others", "--exclude-standard", "*.md"], {
    cwd: ROOT,
  });
  return stdout.split("\n").filter((file) => file !== "" && existsSync(join(ROOT, file)));
}

/** Returns a document without its code blocks. */
async function proseOf(file: string): Promise<string> {
  return (await readFile(join(ROOT, file), "utf8")).replace(CODE_BLOCK, "");
}

/** Returns the anchors that the forge gives to a document's headings. */
async function anchorsOf(file: string): Promise<readonly string[]> {
  const headings = (await proseOf(file)).matchAll(HEADING);
  return [...headings].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

async function isBroken(file: string, target: string): Promise<boolean> {
  const [path = "", anchor] = target.split("#");
  const linked = path === "" ? file : join(dirname(file), path);
  if (!existsSync(join(ROOT, linked))) return true;
  return anchor !== undefined && !(await anchorsOf(linked)).includes(anchor);
}

test.each(DOCUMENTS)("every link of %s leads to a file and a heading that exist", async (file) => {
  const targets = [...(await proseOf(file)).matchAll(LINK)].map(([, target = ""]) => target);
  const broken: string[] = [];
  for (const target of targets) {
    if (!/^[a-z]+:/.test(target) && (await isBroken(file, target))) broken.push(target);
  }
  expect(broken).toEqual([]);
});

/** A path of the server's sources in backticks, as the tables of SECURITY.md and server/README.md name them. */
const SOURCE_PATH = /`((?:access|admin|background|config|database|domain|records|transport)\/[^`\s]*)`/g;

test.each(["SECURITY.md", "server/README.md"])(
  "every path of server/src/ that %s names exists",
  async (file) => {
    const paths = [...(await proseOf(file)).matchAll(SOURCE_PATH)].map(([, path = ""]) => path);
    expect(paths.length).toBeGreaterThan(10);
    const missing = paths.filter(
      (path) => !/[*{…]/.test(path) && !existsSync(join(ROOT, "server/src", path)),
    );
    expect(missing).toEqual([]);
  },
);

test.each(DOCUMENTS.filter((file) => file.includes("/src/")))(
  "every source file that %s names exists",
  async (file) => {
    const names = [...(await proseOf(file)).matchAll(/`([\w./-]+\.ts)`/g)].map(([, name = ""]) => name);
    const folders = [dirname(file), dirname(dirname(file)), "server/src", "."];
    const missing = names.filter((name) => !folders.some((folder) => existsSync(join(ROOT, folder, name))));
    expect(missing).toEqual([]);
  },
);

test.each(DOCUMENTS)("every path from the root that %s names exists", async (file) => {
  const paths = [...(await proseOf(file)).matchAll(ROOT_PATH)].map(([, path = ""]) => path);
  const missing = paths.filter((path) => !/[*{…]/.test(path) && !existsSync(join(ROOT, path)));
  expect(missing).toEqual([]);
});

test("the list of decisions has each of them, in order, with its title", async () => {
  const pages = DOCUMENTS.filter((file) => /^server\/decisions\/\d/.test(file)).toSorted();
  const expected = await Promise.all(
    pages.map(async (file) => [(await proseOf(file)).match(/^# (.+)$/m)?.[1], file.split("/").at(-1)]),
  );
  const listed = (await proseOf("server/decisions/README.md")).matchAll(/^\| \d{4} \| \[(.+)\]\((.+)\) \|/gm);
  expect(expected.length).toBeGreaterThan(0);
  expect([...listed].map(([, title, file]) => [title, file])).toEqual(expected);
});
