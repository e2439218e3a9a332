// A test, not textlint, retext or Vale: those read documents alone, or download a binary, and none reads titles of tests.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** Subjects of earlier commits are not judged. */
const SUBJECTS_SINCE = "2026-11-29T15:05:00Z";
const MAX_SUBJECT = 72;
const MAX_TITLE = 90;

/** A word or phrase that readers of plain technical English stop at, the better one, and a sentence that breaks the rule. */
const RULES: readonly (readonly [pattern: string, better: string, example: string])[] = [
  [
    "(?<!there )(?:is|are|was|were) (?:none|no)(?! (?:longer|more|fewer|faster|earlier|later|less) )",
    "is not a, has no, there is no",
    "a key that is no UUID",
  ],
  [
    "(?:begin|begins|continue|continues|position|page|row|keys?) behind",
    "after",
    "a page begins behind a key",
  ],
  [
    "by (?:itself|themselves)",
    "automatically, alone, separately, unexpectedly",
    "the client retries by itself",
  ],
  ["for ever|for good", "permanently, without a limit", "kept for ever"],
  ["stands? (?:in|once|still)", "is in, stops, does not move", "its clock stands still"],
  ["earlier course", "previous clock", "by the clock's earlier course"],
  ["of now(?! -)", "current", "the password of now"],
  ["goe?s? on", "continues", "its next turn goes on"],
  [
    "(?:a|each|first|last|next|one) look|(?:two|these|\\d+) looks",
    "check, search, reading",
    "the first look at the rows",
  ],
  ["mend(?:s|ed|ing)?", "fix, repair", "until it is mended"],
  ["affairs", "data", "a tenant's affairs"],
  ["unbegun", "unused, pending", "releases an unbegun run"],
  ["whoever|whatever", "the caller that, regardless of, any", "whoever holds the claim"],
  ["nobody", "no one", "nobody waits for it"],
  ["any more", "no longer", "not stored any more"],
  ["anew", "again, a new one", "chosen anew"],
  ["lets? go", "drop, release, evict", "lets go of the claim"],
  ["can't be meant", "is not valid here", "a name that can't be meant"],
];

/** Matches a rule's words also across a line break in a comment. */
const PATTERNS = RULES.map(([pattern, better]) => ({
  pattern: new RegExp(
    `\\b(?:${pattern.replaceAll(/ (?=[a-z(?])/g, "(?: |\\s*\\n[ \\t]*(?:\\*|//+|#+|--|>)?[ \\t]*)")})\\b`,
    "gi",
  ),
  better,
}));

/** Generated files, quotations of other programs, and what can't be changed: applied migrations, past changes, these rules. */
const EXEMPT =
  /\/gen\/|_pb2|\.pb\.go$|api\.md$|package-lock\.json$|openapi\.yaml$|^CHANGELOG|comparison\.md$|^server\/(?:schema\.sql|migrations\/)|words\.test\.ts$/;
/** What is a name and not a word: Python's None in code, and the user and the tenant `nobody`. */
const NAMES = /\b(?:is|are) None\b|["'`/:_]nobody\b|\bnobody(?:["'`@:]|\(| =|,)/g;

const FILES = git(
  "ls-files",
  ..."md ts tsx py go sql proto qnt json yml yaml".split(" ").map((extension) => `*.${extension}`),
).filter((file) => !EXEMPT.test(file));

function git(...args: readonly string[]): string[] {
  const output = execFileSync("git", args, { cwd: ROOT, encoding: "utf8", maxBuffer: 64 << 20 });
  return output.split("\n").filter((line) => line !== "");
}

/** Returns the words of a text that a rule names, each with its line and the better word. */
function judge(text: string): readonly string[] {
  const prose = text.replace(NAMES, (name) => "x".repeat(name.length));
  return PATTERNS.flatMap(({ pattern, better }) =>
    [...prose.matchAll(pattern)].map(
      ({ 0: found, index }) => `${text.slice(0, index).split("\n").length}: "${found}": ${better}`,
    ),
  );
}

/** Titles in TypeScript: of `test`, `it`, `describe` and functions like them, and after a table; and of subtests in Go. */
const TITLE =
  /(?:\b(?:test|it|describe\w*)(?:\.\w+)*(?:\([^()]*\))?|\b(?:runIf|skipIf)\([^()]*\)|\bt\.Run|(?:\]|\bconst)\))\(\s*(?:(["`])((?:\\.|(?!\1)[^\\])*)\1)/g;

/** Returns the titles of tests that are too long. */
function longTitles(source: string): readonly string[] {
  return [...source.matchAll(TITLE)]
    .map(([, , title = ""]) => title)
    .filter((title) => title.length > MAX_TITLE);
}

test.each(RULES)("the rule %j, better %j, finds %j", (pattern, _, example) => {
  expect(judge(example).join()).toMatch(new RegExp(pattern, "i"));
  expect(judge(`/**\n * ${example.replaceAll(" ", "\n * ")}\n */`)).toHaveLength(1);
});

test("names in code are not words", () => {
  expect(judge("if key is None: user('nobody'); there is no more, and it is no longer kept")).toEqual([]);
});

test("documents, comments, messages and titles use plain technical words", () => {
  expect(FILES.length).toBeGreaterThan(1000);
  const found = FILES.flatMap((file) =>
    judge(readFileSync(join(ROOT, file), "utf8")).map((each) => `${file}:${each}`),
  );
  expect(found).toEqual([]);
});

test(`titles of tests have at most ${MAX_TITLE} characters`, () => {
  const long = "x".repeat(MAX_TITLE + 1);
  for (const call of [`test("${long}"`, `it.each(ALL)(\n  "${long}"`, `])(\`${long}\``, `t.Run("${long}"`])
    expect(longTitles(call)).toEqual([long]);
  const tests = FILES.filter((file) => /[._]test\.(?:ts|tsx|go)$|^test\/.*\.ts$/.test(file));
  const found = tests.flatMap((file) =>
    longTitles(readFileSync(join(ROOT, file), "utf8")).map((title) => `${file}: ${title}`),
  );
  expect(found).toEqual([]);
});

test(`subjects of commits have at most ${MAX_SUBJECT} characters`, () => {
  const subjects = git("log", "--no-merges", `--since=${SUBJECTS_SINCE}`, "--format=%s");
  expect(subjects.filter((subject) => subject.length > MAX_SUBJECT)).toEqual([]);
});
