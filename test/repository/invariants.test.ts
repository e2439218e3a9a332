import { readdir, readFile } from "node:fs/promises";
import { expect, test } from "vitest";

const HISTORY = new URL("../lab/history/", import.meta.url);
const CHAOS = new URL("../lab/chaos/", import.meta.url);

/** Returns the numbers that an expression captures in a text, each once, in order. */
function numbersIn(text: string, expression: RegExp): readonly number[] {
  const found = [...text.matchAll(expression)].map(([, number]) => Number(number));
  return [...new Set(found)].sort((a, b) => a - b);
}

test("the history checker's README says what each invariant is that a failure may name", async () => {
  const sources = [HISTORY, CHAOS].map(async (folder) => {
    const names = (await readdir(folder)).filter((name) => /^[^.]+\.ts$/.test(name));
    return Promise.all(names.map((name) => readFile(new URL(name, folder), "utf8")));
  });
  const named = numbersIn(
    (await Promise.all(sources)).flat().join("\n"),
    /(?:\billegal\(|invariant: )(\d+)/g,
  );
  const readme = await readFile(new URL("README.md", HISTORY), "utf8");
  const [, table = ""] = readme.split("| invariant | says |\n");
  expect(named.length).toBeGreaterThan(5);
  expect(numbersIn(table.split("\n\n")[0] ?? "", /^\| (\d+) \|/gm)).toEqual(named);
});
