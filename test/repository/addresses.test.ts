import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { addressesOf } from "../../deploy/release/addresses.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const read = (path: string) => readFileSync(`${ROOT}${path}`, "utf8");
const addresses = addressesOf(JSON.parse(read("package.json")).repository);

test.each([
  ["clients/go/go.mod", `module ${addresses.goModule}\n`],
  ["clients/go/README.md", `(${addresses.repository})`],
  ["clients/python/README.md", `(${addresses.repository})`],
  ["clients/python/pyproject.toml", `Repository = "${addresses.repository}"`],
  [
    "deploy/helm/onceward/Chart.yaml",
    `home: ${addresses.repository}\nsources: ["${addresses.repository}"]\n`,
  ],
  ["deploy/Dockerfile", `org.opencontainers.image.source="${addresses.repository}"`],
])("%s names the address of the repository that package.json names", (path, expected) => {
  expect(read(path)).toContain(expected);
});

test("no file names another address of the repository, the image or the Go module", () => {
  const args = ["grep", "--untracked", "-hoE", "(github\\.com|ghcr\\.io)/onceward[A-Za-z0-9_./-]*"];
  const named = execFileSync("git", args, { cwd: ROOT, encoding: "utf8" }).trim().split("\n");
  const known = [
    addresses.repository.slice("https://".length),
    ...Object.values(addresses.images),
    addresses.charts,
  ];
  // The end of a sentence is not part of an address.
  const others = named
    .map((name) => name.replace(/\.$/, ""))
    .filter((name) => !known.some((address) => name === address || name.startsWith(`${address}/`)));
  expect([...new Set(others)]).toEqual([]);
});

/** Whether a version has been published: then pages may name the registries alone. */
const IS_RELEASED = false;
/** What a registry has only after a release; each page names a checkout beside it. */
const FROM_A_REGISTRY =
  /npm install (?:\S+ )*@onceward\/|npx (?:--yes )?@?onceward|"--yes", "@onceward|pip install onceward|helm (?:install|pull) \S+ oci:|docker (?:run|pull) .*ghcr/;

test("until a release, no page installs from a registry without a checkout's way beside it", () => {
  const pages = execFileSync("git", ["ls-files", "*.md"], { cwd: ROOT, encoding: "utf8" }).trim().split("\n");
  const premature = pages.filter((page) => {
    const text = read(page);
    return FROM_A_REGISTRY.test(text) && !/until the first release|before the first release/i.test(text);
  });
  expect(IS_RELEASED ? [] : premature).toEqual([]);
});
