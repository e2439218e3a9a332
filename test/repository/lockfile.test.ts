import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";

interface LockedPackage {
  readonly resolved?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const text = await readFile(new URL("../../package-lock.json", import.meta.url), "utf8");
const packages: Readonly<Record<string, LockedPackage>> = JSON.parse(text).packages;

test("the lockfile contains no address of a registry: each machine uses its own", () => {
  const addresses = Object.values(packages).flatMap(({ resolved = "" }) =>
    resolved.includes(":") ? [resolved] : [],
  );
  expect(addresses).toEqual([]);
});

// npm omits a platform's package that the registry does not have yet, and npm ci then refuses the lockfile on
// all machines.
test("the packages of every platform are locked, not only those of the machine that wrote the lockfile", () => {
  const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).filter(
      (name) => !(`${path}/node_modules/${name}` in packages) && !(`node_modules/${name}` in packages),
    ),
  );
  expect(missing).toEqual([]);
});
