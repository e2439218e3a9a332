import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";

interface LockedPackage {
  readonly resolved?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const text = await readFile(new URL("../../package-lock.json", import.meta.url), "utf8");
const packages: Readonly<Record<string, LockedPackage>> = JSON.parse(text).packages;

test("no registry is written into the lockfile: each machine uses its own", () => {
  const addresses = Object.values(packages).flatMap(({ resolved = "" }) =>
    resolved.includes(":") ? [resolved] : [],
  );
  expect(addresses).toEqual([]);
});

// npm leaves out a platform's package that the registry doesn't have yet, and then npm ci refuses the lockfile anywhere.
test("the packages of every platform are locked, not only those of the machine that made the lockfile", () => {
  const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).filter(
      (name) => !(`${path}/node_modules/${name}` in packages) && !(`node_modules/${name}` in packages),
    ),
  );
  expect(missing).toEqual([]);
});
