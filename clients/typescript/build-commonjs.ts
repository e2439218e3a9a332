import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

/**
 * Part of `npm run build`: writes `dist/cjs`, the package for `require`, from the modules that tsc has written to `dist`.
 * Jest, and programs that are compiled to CommonJS, load it. Packages without CommonJS of their own are included.
 */
const HOME = fileURLToPath(new URL(".", import.meta.url));
const DIST = join(HOME, "dist");
const WITHOUT_COMMONJS = ["canonicalize", "@noble/hashes"];

const { exports, dependencies, peerDependencies } = JSON.parse(
  await readFile(join(HOME, "package.json"), "utf8"),
) as {
  exports: Record<string, string | { import: { default: string } }>;
  dependencies: Record<string, string>;
  peerDependencies: Record<string, string>;
};

const entries = Object.values(exports).flatMap((entry) =>
  typeof entry === "string" ? [] : [entry.import.default],
);
const external = Object.keys({ ...dependencies, ...peerDependencies })
  .filter((name) => !WITHOUT_COMMONJS.includes(name))
  .map((name) => new RegExp(`^${name}(/|$)`));

const bundle = await rolldown({
  input: Object.fromEntries(
    entries.map((path) => [path.replace(/^\.\/dist\/|\.js$/g, ""), join(HOME, path)]),
  ),
  external: [/^node:/, ...external],
  platform: "node",
  // Its comments name each module's path on the machine that builds.
  experimental: { attachDebugInfo: "none" },
});
await bundle.write({
  dir: join(DIST, "cjs"),
  format: "cjs",
  entryFileNames: "[name].cjs",
  chunkFileNames: "chunks/[name]-[hash].cjs",
});
await bundle.close();

// The same declarations, as those of CommonJS: a compiler takes the format of a declaration from its ending.
for (const file of await readdir(DIST, { recursive: true })) {
  if (!file.endsWith(".d.ts") || file.startsWith("cjs")) continue;
  const path = join(DIST, "cjs", file.replace(/\.d\.ts$/, ".d.cts"));
  const text = await readFile(join(DIST, file), "utf8");
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text.replace(/((?:from |import\()"\.{1,2}\/[^"]*)\.[jt]s"/g, '$1.cjs"'));
}
