import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";

interface LockedPackage {
  readonly resolved?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

type Lockfile = Readonly<Record<string, LockedPackage>>;

const lockfiles = await Promise.all(
  ["package-lock.json", "deploy/site/package-lock.json", "test/on-demand/package-lock.json"].map(
    async (path): Promise<[string, Lockfile]> => {
      const text = await readFile(new URL(`../../${path}`, import.meta.url), "utf8");
      return [path, JSON.parse(text).packages];
    },
  ),
);

test.each(lockfiles)("%s contains no address of a registry: each machine uses its own", (_, packages) => {
  const addresses = Object.values(packages).flatMap(({ resolved = "" }) =>
    resolved.includes(":") ? [resolved] : [],
  );
  expect(addresses).toEqual([]);
});

// npm omits a platform's package that the registry does not have yet, and npm ci then refuses the lockfile on
// all machines.
test.each(lockfiles)(
  "%s locks the packages of every platform, not only of the machine that wrote it",
  (_, packages) => {
    const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies).filter(
        (name) => !(`${path}/node_modules/${name}` in packages) && !(`node_modules/${name}` in packages),
      ),
    );
    expect(missing).toEqual([]);
  },
);
