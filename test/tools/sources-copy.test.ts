import { access, readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { copySources, replaceTexts } from "../support/processes/sources-copy.ts";

const CHANGE = { file: "random.ts", from: "export function createRandom", to: "function $&" };

test("a copy of sources is changed, changed back and removed", async () => {
  const texts = await replaceTexts("test/support", [CHANGE]);
  const copy = await copySources("test/support");
  const path = copy.pathOf("test/support/random.ts");
  const original = await readFile(path, "utf8");
  const undo = await copy.write(texts);
  expect(await readFile(path, "utf8")).toBe(original.split(CHANGE.from).join(CHANGE.to));
  await undo();
  expect(await readFile(path, "utf8")).toBe(original);
  await copy[Symbol.asyncDispose]();
  await expect(access(path)).rejects.toThrow("ENOENT");
});

test("a replacement whose text is not once in its file is refused", async () => {
  const stale = { ...CHANGE, from: "no such text" };
  await expect(replaceTexts("test/support", [stale])).rejects.toThrow(
    "found 0 times in test/support/random.ts",
  );
});
