import { readdir, readFile } from "node:fs/promises";
import { beforeAll, expect, test } from "vitest";
import {
  API_FILE,
  apiReport,
  declarationsOf,
  exportNames,
  exportsOf,
  isGenerated,
  reachable,
} from "../support/packages/api-report.ts";
import { readSurface, type Surface } from "../support/packages/declarations.ts";

const CLIENT = new URL("../../clients/typescript/", import.meta.url);

let surface: Surface;

beforeAll(async () => {
  surface = await readSurface();
});

test("clients/typescript/api.md lists the client's exports; `npm run generate -- api` writes it", async () => {
  expect(apiReport(surface)).toBe(await readFile(API_FILE, "utf8"));
});

test("every export of every entry has a docstring", () => {
  const undocumented = [...surface.entries].flatMap(([entry, module]) =>
    [...exportsOf(surface, module)]
      .filter(([, { module }]) => !isGenerated(module))
      .filter(([, place]) => !declarationsOf(surface, place).some(({ documented }) => documented))
      .map(([name]) => `${entry} ${name}`),
  );
  expect(undocumented).toEqual([]);
});

test("every option has a docstring, with unit of a duration and default of an optional one", () => {
  const options = [...reachable(surface)].filter(({ name }) => /(Options|Defaults|Policy)$/.test(name));
  const members = options.flatMap(({ name, source }) =>
    [...source.matchAll(MEMBER)].map(([, doc = "", member = "", optional = ""]) => ({
      name,
      doc,
      member,
      optional,
    })),
  );
  expect(members.length).toBeGreaterThan(60);
  const wrong = members.filter(({ doc, member, optional }) => {
    if (doc === "" || (member.endsWith("Ms") && !/milliseconds|(?<!\w)ms\b/.test(doc))) return true;
    return optional === "?" && !/\bDefault(?:s to)?\b|\bby default\b|undefined/i.test(doc);
  });
  expect(wrong.map(({ name, member }) => `${name}.${member}`)).toEqual([]);
});

/** A property of an interface or a type literal, with the comment before it. */
const MEMBER = /(\/\*\*(?:[^*]|\*(?!\/))*\*\/\n)?^ +readonly (\w+)(\??): /gm;

test("no export has the name of a global of JavaScript, of TypeScript's library or of browsers", () => {
  const globals = new Set([...Object.getOwnPropertyNames(globalThis), ...LIBRARY_TYPES.split(" ")]);
  const shadows = [...surface.entries].flatMap(([entry, module]) =>
    exportNames(surface, module)
      .filter((name) => globals.has(name))
      .map((name) => `${entry} ${name}`),
  );
  expect(shadows).toEqual([]);
});

/** Global types that are not values, and those of browsers that a proto file's message may be named like. */
const LIBRARY_TYPES =
  "Record Partial Required Readonly Pick Omit Exclude Extract NonNullable Parameters ReturnType Awaited " +
  "PropertyKey Iterable Disposable RequestInfo RequestInit BodyInit Lock Node Range Text Comment Document Element";

test("the root fits on one screen", () => {
  expect(exportsOf(surface, "index").size).toBeLessThanOrEqual(74);
});

test("every export that a comment or the README names exists in its entry", async () => {
  const pages = [new URL("README.md", CLIENT)];
  for (const file of await readdir(new URL("src/", CLIENT), { recursive: true })) {
    if (file.endsWith(".ts")) pages.push(new URL(`src/${file}`, CLIENT));
  }
  const texts = await Promise.all(pages.map((page) => readFile(page, "utf8")));
  const named = texts.flatMap((text) => [...text.matchAll(NAMED_EXPORT)]);
  expect(named.length).toBeGreaterThan(20);
  const unknown = named.filter(([, name = "", entry = ""]) => {
    const module = surface.entries.get(entry === "" ? "." : `./${entry}`);
    return module === undefined || !exportsOf(surface, module).has(name);
  });
  expect(unknown.map(([sentence]) => sentence)).toEqual([]);
});

/** As in "`idempotent` in `@onceward/client/http`", also across a comment's lines, and with a link around the entry. */
const NAMED_EXPORT = /`(\w+)(?:\(\w*\))?`[\s*]+(?:in|of|from)[\s*]+\[?`@onceward\/client\/?([\w-]*)`/g;
