import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { completionScript, SHELLS, type Shell } from "./completion-script.ts";

/** A folder with an `onceward` that prints its arguments, one for each line. */
const dir = mkdtempSync(join(tmpdir(), "ow-completion-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
writeFileSync(join(dir, "onceward"), `#!/bin/sh\nfor word in "$@"; do printf '<%s>\\n' "$word"; done\n`);
chmodSync(join(dir, "onceward"), 0o755);
/** Finds that program first. All three shells read this. */
const PREFER_DIR = `export PATH="${dir}:$PATH"\n`;

function isInstalled(shell: Shell): boolean {
  try {
    execFileSync(shell, ["-c", "exit"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** Commands that print what each shell offers after "onceward records list --state ". */
const OFFERS: Readonly<Record<Shell, (script: string) => string>> = {
  bash: (script) => `${script}
COMP_WORDS=(onceward records list --state '')
COMP_CWORD=4
_onceward
eval "printf '%s\\n' \${COMPREPLY[*]}"`,
  // Completion runs in zsh's line editor only: its functions and variables are set instead.
  zsh: (script) => `compdef() { :; }; compadd() { shift; print -l -- "$@"; }
words=(onceward records list --state '') CURRENT=5
${script}
_onceward`,
  fish: (script) => `${script}
complete -C 'onceward records list --state '`,
};

test("a name that bash would expand is inserted as it is, and runs nothing on Enter", () => {
  const name = `$(touch pwned); \`touch pwned\` * "it's"`;
  const script = `onceward() { printf '%s\\n' '${name.replaceAll("'", `'\\''`)}'; }
${completionScript("bash")}
COMP_WORDS=(onceward '') COMP_CWORD=1
_onceward
eval "printf '<%s>\\n' \${COMPREPLY[0]}"`;
  expect(execFileSync("bash", ["-c", script], { cwd: dir, encoding: "utf8" })).toBe(`<${name}>\n`);
  expect(readdirSync(dir)).toEqual(["onceward"]);
});

test.each(SHELLS.filter(isInstalled))(
  "%s asks the program with the words up to the cursor, and offers its lines",
  (shell) => {
    const printed = execFileSync(shell, ["-c", PREFER_DIR + OFFERS[shell](completionScript(shell))], {
      encoding: "utf8",
    });
    const words = ["completion-words", "--", "records", "list", "--state", ""];
    expect(printed.trim().split("\n").sort()).toEqual(words.map((word) => `<${word}>`).sort());
  },
);
