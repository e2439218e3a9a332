import { globSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { expect, test } from "vitest";

const CONSOLE = new URL("..", import.meta.url).pathname;
const IMPORT = /import (\w+) from "[^"]*\/(\w+)\.module\.css"/g;

/** Returns the classes that modules of styles have rules for, such as "parts.empty". */
function ruled(): ReadonlySet<string> {
  const files = globSync(`${CONSOLE}styles/*.module.css`);
  const classes = files.flatMap((file) => {
    const rules = readFileSync(file, "utf8").replace(/\/\*.*?\*\/|"[^"]*"|\{[^{}]*\}/gs, "");
    return [...rules.matchAll(/\.([A-Za-z]\w*)/g)].map(
      ([, name]) => `${basename(file, ".module.css")}.${name}`,
    );
  });
  return new Set(classes);
}

/** Returns the classes that components name. */
function named(): ReadonlySet<string> {
  const classes = globSync(`${CONSOLE}**/*.tsx`).flatMap((file) => {
    const text = readFileSync(file, "utf8");
    return [...text.matchAll(IMPORT)].flatMap(([, variable = "", module]) =>
      [...text.matchAll(new RegExp(`(?<![\\w/])${variable}\\.(\\w+)`, "g"))].map(
        ([, name]) => `${module}.${name}`,
      ),
    );
  });
  return new Set(classes);
}

test("each class that a component names has a rule, and each rule is named", () => {
  const [names, rules] = [named(), ruled()];
  expect(
    [...names].filter((name) => !rules.has(name)),
    "without a rule",
  ).toEqual([]);
  expect(
    [...rules].filter((name) => !names.has(name)),
    "not named",
  ).toEqual([]);
});
