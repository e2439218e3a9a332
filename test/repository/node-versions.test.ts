import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { expect, test } from "vitest";

// It declares no types.
const { satisfies } = createRequire(import.meta.url)("semver") as {
  satisfies(version: string, range: string): boolean;
};

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
const enginesOf = (path: string): string | undefined => JSON.parse(read(path)).engines?.node;

/** What a person needs to work here, and the oldest of the majors that the published packages support. */
const REPOSITORY = "22.22";
const PACKAGES = "22";

test("README, CONTRIBUTING and the manifests name one Node for the repository", () => {
  for (const page of ["README.md", "CONTRIBUTING.md"])
    expect(/with Node ≥ ([\d.]+)/.exec(read(page))?.[1], page).toBe(REPOSITORY);
  for (const path of ["package.json", "test/on-demand/package.json"])
    expect(enginesOf(path), path).toBe(`>=${REPOSITORY}`);
});

test("the packages, their pages and the workflows name one oldest Node", () => {
  for (const name of ["typescript", "cli"]) {
    expect(enginesOf(`clients/${name}/package.json`)).toBe(`>=${PACKAGES}`);
    expect(/Node (\d+) or later/.exec(read(`clients/${name}/README.md`))?.[1]).toBe(PACKAGES);
  }
  expect(/node: \[(\d+)/.exec(read(".github/workflows/nightly.yml"))?.[1]).toBe(PACKAGES);
  for (const name of ["ci", "nightly"]) {
    const workflow = read(`.github/workflows/${name}.yml`);
    const named = [...workflow.matchAll(/container: node:(\d+)|node-version: (\d+)/g)];
    expect([...new Set(named.map(([, image, version]) => image ?? version))], name).toEqual([PACKAGES]);
  }
});

// npm ci warns of each package that asks for another Node.
test.each(["package-lock.json", "test/on-demand/package-lock.json"])(
  "every package of %s runs on the Node that README names, and on the newest majors",
  (path) => {
    const packages: Record<string, { engines?: { node?: string } }> = JSON.parse(read(path)).packages;
    for (const version of [`${REPOSITORY}.0`, "24.11.0", "26.10.0"]) {
      const others = Object.entries(packages).filter(
        ([, { engines }]) => engines?.node !== undefined && !satisfies(version, engines.node),
      );
      expect(others.map(([name]) => name)).toEqual([]);
    }
  },
);
