import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { addressesOf } from "../../deploy/release/addresses.ts";
import { contextPathspecs, releasedValues } from "../../deploy/release/archives.ts";
import { changelogSection } from "../../deploy/release/changelog.ts";
import { contextProblems } from "../../deploy/release/checks/image.ts";
import { licenceProblems } from "../../deploy/release/checks/licences.ts";
import { publishProblems, typeProblems } from "../../deploy/release/checks/package-problems.ts";
import { secretProblems } from "../../deploy/release/checks/secrets.ts";
import { VERSIONED, versionProblems } from "../../deploy/release/checks/versions.ts";
import { releasedManifest } from "../../deploy/release/packages.ts";
import { relativeLinks, releasedReadme } from "../../deploy/release/readme-links.ts";
import { bomOf, type Lock, productionPackages } from "../../deploy/release/sbom.ts";
import { PACKAGE_DIRS } from "../../deploy/release/stage.ts";
import { formatApiKey, generateApiKey } from "../../server/src/access/api-key.ts";
import { makeCertificate } from "../support/network/certificates.ts";
import { newDir } from "../support/new-dir.ts";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** Writes files into a folder that is removed when the test ends. */
async function folderWith(files: Readonly<Record<string, string>>): Promise<string> {
  const dir = await newDir();
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(dir, name)), { recursive: true });
    await writeFile(join(dir, name), text);
  }
  return dir;
}

/** Packs a package of these files, as npm does. */
async function packed(files: Readonly<Record<string, string>>): Promise<Uint8Array> {
  const dir = await folderWith(
    Object.fromEntries(Object.entries(files).map(([name, text]) => [`package/${name}`, text])),
  );
  await run("tar", ["-czf", "package.tgz", "package"], { cwd: dir });
  return readFile(join(dir, "package.tgz"));
}

test("everything in the repository has one version", async () => {
  const texts = await Promise.all(
    VERSIONED.map(async (path) => [path, await readFile(join(ROOT, path), "utf8")]),
  );
  expect(versionProblems(Object.fromEntries(texts))).toEqual([]);
});

test("another version of a package, an own dependency, the chart or the tag is found", () => {
  const manifest = (version: string, dependencies = {}) => JSON.stringify({ version, dependencies });
  const sound = {
    "package.json": manifest("1.2.3"),
    "clients/cli/package.json": manifest("1.2.3", { "@onceward/client": "^1.2.3", commander: "^14.0.0" }),
    "package-lock.json": JSON.stringify({ version: "1.2.3", packages: { server: { version: "1.2.3" } } }),
    "deploy/helm/onceward/Chart.yaml": 'version: 1.2.3\nappVersion: "1.2.3"\n',
    "clients/python/pyproject.toml": '[project]\nname = "onceward"\nversion = "1.2.3"\n',
    "clients/go/onceward/version.go": 'package onceward\n\nconst Version = "1.2.3"\n',
  };
  expect(versionProblems(sound, "v1.2.3")).toEqual([]);
  expect(versionProblems(sound, "1.2.3")).toEqual(["the tag 1.2.3 is not v1.2.3"]);
  const broken = {
    "package.json": sound["package.json"],
    "clients/cli/package.json": manifest("1.2.2", { "@onceward/client": "^1.2.2" }),
    "package-lock.json": JSON.stringify({ version: "1.2.3", packages: { server: { version: "1.2.2" } } }),
    "deploy/helm/onceward/Chart.yaml": "version: 1.2.3\n",
    "clients/go/onceward/version.go": 'const Version = "1.2.2"\n',
  };
  expect(versionProblems(broken)).toEqual([
    "clients/cli/package.json: version is 1.2.2, not 1.2.3",
    "clients/cli/package.json: @onceward/client is 1.2.2, not 1.2.3",
    "package-lock.json: server is 1.2.2, not 1.2.3",
    "deploy/helm/onceward/Chart.yaml: appVersion is undefined, not 1.2.3",
    "clients/go/onceward/version.go: version is 1.2.2, not 1.2.3",
  ]);
});

test("a README's links work on a registry's page: they lead to the released commit, or are paths", async () => {
  const readme =
    "See [api.md](api.md), [the server](../../server/README.md#api), [`a`](a), [x](#x), [y](https://y.example).\n";
  const commit = "0a1b";
  expect(
    releasedReadme(readme, "clients/cli", { repositoryUrl: "https://forge.example/onceward", commit }),
  ).toBe(
    "See [api.md](https://forge.example/onceward/blob/0a1b/clients/cli/api.md), " +
      "[the server](https://forge.example/onceward/blob/0a1b/server/README.md#api), " +
      "[`a`](https://forge.example/onceward/blob/0a1b/clients/cli/a), [x](#x), [y](https://y.example).\n",
  );
  const code = "```ts\nconst [a](b) = 1;\n```\nand `[c](d)`\n";
  expect(releasedReadme(code, "server", { repositoryUrl: "https://forge.example/onceward", commit })).toBe(
    code,
  );
  for (const folder of PACKAGE_DIRS) {
    const text = await readFile(join(ROOT, folder, "README.md"), "utf8");
    expect(relativeLinks(text)).not.toEqual([]);
    const released = releasedReadme(text, folder, {
      repositoryUrl: "https://forge.example/onceward",
      commit,
    });
    expect(relativeLinks(released)).toEqual([]);
    expect(released.match(/\]\((?!https?:|#)/g)).toBeNull();
  }
});

const LOCK: Lock = {
  "": { version: "1.0.0" },
  app: {
    name: "@onceward/app",
    version: "1.0.0",
    license: "Apache-2.0",
    dependencies: { a: "*", ours: "*" },
  },
  ours: {
    name: "ours",
    version: "1.0.0",
    license: "Apache-2.0",
    peerDependencies: { b: "*", c: "*" },
    peerDependenciesMeta: { c: { optional: true } },
  },
  "node_modules/ours": { link: true, resolved: "ours" },
  "node_modules/a": { version: "2.0.0", license: "MIT", dependencies: { b: "*" }, integrity: "sha512-AAEC" },
  "node_modules/a/node_modules/b": { version: "3.0.0", license: "GPL-3.0-only" },
  "node_modules/b": { version: "4.0.0", license: "(MIT OR GPL-3.0-only)" },
  "node_modules/c": { version: "5.0.0", license: "UNLICENSED" },
};

test("a bill of materials has what is installed in production, with nested and peer ones", () => {
  const packages = productionPackages(LOCK, "app");
  const addresses = addressesOf("https://github.com/acme/once");
  const stage = { dir: "", commit: "c", committedAt: "2030-01-01T00:00:00Z", version: "1.0.0", addresses };
  const bom = bomOf(packages, "app", stage);
  expect(bom).toMatchObject({
    bomFormat: "CycloneDX",
    serialNumber: expect.stringMatching(
      /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/,
    ),
    metadata: { component: { name: "@onceward/app", purl: "pkg:npm/%40onceward/app@1.0.0" } },
    components: [
      { name: "a", version: "2.0.0", hashes: [{ alg: "SHA-512", content: "000102" }] },
      { name: "ours", version: "1.0.0" },
      { name: "b", version: "3.0.0", licenses: [{ expression: "GPL-3.0-only" }] },
      { name: "b", version: "4.0.0" },
    ],
    dependencies: expect.arrayContaining([{ ref: "pkg:npm/a@2.0.0", dependsOn: ["pkg:npm/b@3.0.0"] }]),
  });
  expect(bomOf(packages, "app", stage)).toEqual(bom);
  expect(() => productionPackages({ ...LOCK, "node_modules/a": {} }, "app")).toThrow("lacks node_modules/a");
});

test("a bill of materials of the server has what the console's page is built from", async () => {
  const { packages } = JSON.parse(await readFile(join(ROOT, "package-lock.json"), "utf8"));
  const listed = [...productionPackages(packages, "server").values()];
  const names = listed.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(["@onceward/console", "pg", "preact", "wouter"]));
  expect(names).not.toContain("vite");
  expect(licenceProblems(listed)).toEqual([]);
});

test("a forbidden licence is found, a choice that is allowed is not", () => {
  expect(licenceProblems(productionPackages(LOCK, "app").values())).toEqual([
    "b 3.0.0 has the licence GPL-3.0-only",
  ]);
  const component = { name: "d", version: "1.0.0", integrity: undefined, needs: [] };
  const problemsOf = (license: string | undefined) => licenceProblems([{ ...component, license }]).length;
  expect(
    ["(Apache-2.0 AND BSD-3-Clause)", "MIT", undefined, "MIT AND GPL-2.0", "SEE LICENSE IN x"].map(
      problemsOf,
    ),
  ).toEqual([0, 0, 1, 1, 1]);
});

test("secrets and paths of this machine are found in a tarball's files", async () => {
  const certificate = await makeCertificate();
  onTestFinished(() => certificate.remove());
  const planted = {
    "dist/a.js": `const key = ${JSON.stringify(certificate.pem.key)}`,
    "dist/b.js": `const key = "${formatApiKey(generateApiKey())}";`,
    "c.md": `ONCEWARD_API_KEY_PEPPER=${"0a".repeat(32)}`,
    "d.js": 'connect("postgresql://onceward:hunter2@db.example:5432/onceward")',
    "e.js": `const token = "npm_${"a".repeat(36)}";`,
    "f.js": `from "${ROOT}server/src/main.ts"`,
    ".env.production": "",
    "g/.npmrc": "",
    "tls/server.key": "",
  };
  const sound = {
    "README.md":
      "DATABASE_URL=postgresql://user:password@host:5432/database, -----BEGIN PRIVATE KEY-----, ow_<id>_<secret>",
    "env.js": `const key = process.env.ONCEWARD_API_KEY_PEPPER; const url = "redis://\${user}:\${password}@host";`,
  };
  const dir = await folderWith({ ...planted, ...sound });
  expect(await secretProblems(dir, [ROOT])).toEqual([
    ".env.production is a file for secrets",
    "c.md contains a pepper",
    "d.js contains a URL with a password",
    "dist/a.js contains a private key",
    "dist/b.js contains an API key of Onceward",
    "e.js contains a token of npm",
    "f.js contains a path of this machine",
    "g/.npmrc is a file for secrets",
    "tls/server.key is a file for secrets",
  ]);
});

test("a file that is missing and types that are missing are found in a package", async () => {
  const entry = { types: "./index.d.ts", default: "./index.js" };
  const manifest = (exported: object) =>
    JSON.stringify({
      name: "a",
      version: "1.0.0",
      license: "MIT",
      type: "module",
      exports: { ".": exported },
      files: ["."],
    });
  const files = { "index.js": "export const a = 1;\n", "index.d.ts": "export declare const a: number;\n" };
  const sound = await packed({ ...files, "package.json": manifest(entry) });
  expect(await publishProblems(sound)).toEqual([]);
  expect(await typeProblems(sound)).toEqual([]);
  const broken = await packed({ ...files, "package.json": manifest({ ...entry, default: "./missing.js" }) });
  expect(await publishProblems(broken)).toEqual(["FILE_DOES_NOT_EXIST at exports...default"]);
  const untyped = await packed({
    "index.js": files["index.js"],
    "package.json": manifest({ default: "./index.js" }),
  });
  expect(await typeProblems(untyped)).toEqual(["there are no types"]);
});

test("the section of a version is found in the changelog; a missing and an empty one are refused", () => {
  const changelog = "# Changelog\n\n## Unreleased\n\n## 0.2.0\n\n### Added\n\n- One.\n\n## 0.1.0\n\n";
  expect(changelogSection(changelog, "0.2.0")).toBe("### Added\n\n- One.\n");
  for (const version of ["0.1.0", "0.2", "1.0.0"]) {
    expect(() => changelogSection(changelog, version)).toThrow(`no section "## ${version}"`);
  }
});

test("a file that the Dockerfile copies and the context lacks is found", async () => {
  const files = {
    "deploy/Dockerfile": "COPY a.json b/*.json ./\nCOPY --from=x y ./\nCOPY server server\n",
    "a.json": "",
  };
  const lacking = await folderWith({ ...files, "server/main.ts": "" });
  expect(await contextProblems(lacking)).toEqual(["the context lacks b/*.json"]);
  expect(await contextProblems(await folderWith({ ...files, "server/main.ts": "", "b/c.json": "" }))).toEqual(
    [],
  );
  expect(await contextProblems(await folderWith({}))).toEqual(["the context has no deploy/Dockerfile"]);
});

test("the repository's .dockerignore is translated; a form that cannot be is refused", async () => {
  const pathspecs = contextPathspecs(await readFile(join(ROOT, ".dockerignore"), "utf8"));
  const { stdout } = await run("git", ["ls-files", "--", ...pathspecs], { cwd: ROOT });
  const files = stdout.trim().split("\n");
  expect(files).toEqual(
    expect.arrayContaining([
      ...[
        "server/src/main.ts",
        "clients/console/src/main.tsx",
        "clients/cli/src/main.ts",
        "deploy/Dockerfile",
      ],
    ]),
  );
  expect(
    files.filter((file) =>
      /\.test\.ts$|^server\/(dev|decisions|console)\/|^clients\/mcp-proxy\/src\/|^test\//.test(file),
    ),
  ).toEqual([]);
  for (const text of ["*.ts", "*\nserver", "*\n!a\nb\n!c"]) {
    expect(() => contextPathspecs(text)).toThrow("a form that is not understood");
  }
});

test("a released manifest names commit and page, and the server's its compiled program", () => {
  const source = { commit: "c0", repositoryUrl: "https://forge.example/onceward" };
  const pagesOf = (directory: string) => ({
    homepage: `https://forge.example/onceward/tree/c0/${directory}#readme`,
    repository: { type: "git", url: "git+https://forge.example/onceward.git", directory },
    gitHead: "c0",
  });
  const server = { name: "s", private: true, bin: { "onceward-server": "src/main.ts" } };
  expect(releasedManifest(server, { ...source, folder: "server" })).toEqual({
    name: "s",
    bin: { "onceward-server": "dist/main.js" },
    files: ["dist", "migrations", "console", "openapi.yaml"],
    ...pagesOf("server"),
  });
  const client = { name: "c", files: ["dist"] };
  expect(releasedManifest(client, { ...source, folder: "clients/typescript" })).toEqual({
    ...client,
    ...pagesOf("clients/typescript"),
  });
});

test("the released chart pulls the released images", async () => {
  const values = await readFile(join(ROOT, "deploy/helm/onceward/values.yaml"), "utf8");
  const addresses = addressesOf("https://github.com/acme/once");
  expect(addresses).toEqual({
    repository: "https://github.com/acme/once",
    images: { server: "ghcr.io/acme/onceward-server", cli: "ghcr.io/acme/onceward" },
    charts: "ghcr.io/acme/charts",
    goModule: "github.com/acme/once/clients/go",
  });
  const { image, httpProxy } = parse(releasedValues(values, addresses));
  expect([image.repository, httpProxy.image.repository]).toEqual(Object.values(addresses.images));
  expect(() => releasedValues("image: {}", addresses)).toThrow("has no repository: onceward-server");
  expect(() => addressesOf(undefined)).toThrow("repository is not");
});
