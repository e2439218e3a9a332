import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { CHILD_ENVIRONMENT } from "./child-environment.ts";
import type { Workplace } from "./command.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** A command of a page, and the output that the page shows. */
export interface Step {
  readonly command: string;
  /** Each somewhere in a line, in this order; "…" is anything. */
  readonly printed: readonly string[];
}

/** The outcome of a command; `exit` is undefined if it did not start. */
export interface Followed {
  readonly exit: number | undefined;
  /** Standard output and standard error. */
  readonly output: string;
}

/**
 * Returns the commands of a page, named from the repository's root, in order: the lines of its `sh` blocks. A
 * `text` block is the output of the last command before it.
 *
 * @param section the heading of a section of the second level, for its commands only; an empty text for those
 *   before the first section; undefined for all.
 */
export async function stepsOf(page: string, section?: string): Promise<readonly Step[]> {
  const whole = await readFile(join(ROOT, page), "utf8");
  const text = section === undefined ? whole : sectionOf(whole, section);
  const steps: Step[] = [];
  for (const [, language, block = ""] of text.matchAll(/^```(sh|text)\n([\s\S]*?)^```$/gm)) {
    if (language === "sh") {
      // A line that ends in a backslash or a pipe continues on the next line.
      const commands = block.trim().split(/(?<![\\|])\n/);
      steps.push(...commands.map((command) => ({ command, printed: [] })));
    } else {
      const last = steps.pop();
      if (last === undefined) throw new Error(`${page}: no command prints this:\n${block}`);
      steps.push({ ...last, printed: block.trim().split("\n") });
    }
  }
  return steps;
}

/** Returns the part of a page below a heading of the second level. @throws if there is none. */
function sectionOf(text: string, heading: string): string {
  const parts = text.split(/^## /m);
  if (heading === "") return parts[0] ?? "";
  const found = parts.find((part) => part.startsWith(`${heading}\n`));
  if (found === undefined) throw new Error(`the page has no section ${heading}`);
  return found;
}

/** Links the repository's files into a workplace, so that its npm scripts run there as in a clone. */
export async function layOutClone({ dir }: Workplace): Promise<void> {
  const { name, scripts } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8"));
  await writeFile(join(dir, "package.json"), JSON.stringify({ name, private: true, scripts }));
  for (const entry of ["clients", "node_modules"]) await symlink(join(ROOT, entry), join(dir, entry));
}

/** Runs commands in one shell until one of them fails; it has no terminal. */
export async function followSteps(
  { dir, temporaryDir }: Workplace,
  commands: readonly string[],
): Promise<readonly Followed[]> {
  const script = commands.map((command, index) => {
    const output = join(temporaryDir, `${index}`);
    return `{ ${command}\n} > ${output}.out 2>&1 < /dev/null\nexit=$?; echo $exit > ${output}.exit; [ $exit = 0 ] || exit`;
  });
  const shell = spawn("bash", ["-c", `set -o pipefail\n${CURL_FALLBACK}\n${script.join("\n")}`], {
    cwd: dir,
    // Its own process group, so that the whole group can be killed.
    detached: true,
    env: { ...CHILD_ENVIRONMENT, HOME: dir, TMPDIR: temporaryDir, NO_UPDATE_NOTIFIER: "1" },
    stdio: "ignore",
  });
  onTestFinished(() => {
    if (shell.exitCode === null && shell.pid !== undefined) process.kill(-shell.pid, "SIGKILL");
  });
  await once(shell, "exit");
  return Promise.all(commands.map((_, index) => readFollowed(join(temporaryDir, `${index}`))));
}

async function readFollowed(file: string): Promise<Followed> {
  const [output, exit] = await Promise.all(
    [".out", ".exit"].map((ending) => readFile(`${file}${ending}`, "utf8").catch(() => "")),
  );
  return { exit: exit ? Number(exit) : undefined, output: output ?? "" };
}

/** Replaces curl in a shell if it is not installed. */
export const CURL_FALLBACK = `command -v curl > /dev/null || curl() { node -e '
const [, url, ...rest] = process.argv.slice(1);
const headers = [], bodies = [];
for (let i = 0; i < rest.length; i += 2) (rest[i] === "-H" ? headers : bodies).push(rest[i + 1]);
fetch(url, { method: "POST", headers: headers.map((line) => line.split(": ")), body: bodies[0] })
  .then((response) => response.text()).then(console.log);' -- "$@"; }`;

/** Returns the first expected line that is missing from the output; undefined if all are there. */
export function missingLine(printed: readonly string[], output: string): string | undefined {
  let lines = output.split("\n");
  return printed.find((expected) => {
    const at = lines.findIndex((line) => patternOf(expected).test(line));
    lines = at === -1 ? [] : lines.slice(at + 1);
    return at === -1;
  });
}

/** Returns a pattern of a page's line that ignores the widths of its columns. */
function patternOf(line: string): RegExp {
  const words = line
    .trim()
    .replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")
    .split(/\s+/);
  return new RegExp(words.join("\\s+").replaceAll("…", ".*"));
}
