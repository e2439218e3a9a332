import { createHash } from "node:crypto";
import type { Stage } from "./stage.ts";

/** An entry of `package-lock.json`. */
export interface LockedPackage {
  readonly version?: string;
  readonly license?: string;
  readonly integrity?: string;
  /** For a link: the folder of the workspace. */
  readonly resolved?: string;
  readonly link?: boolean;
  readonly name?: string;
  readonly dependencies?: Names;
  readonly optionalDependencies?: Names;
  readonly peerDependencies?: Names;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
}

type Names = Readonly<Record<string, string>>;
/** The packages of a lockfile by their paths. */
export type Lock = Readonly<Record<string, LockedPackage>>;

/** A package that is installed in production. */
export interface Component {
  readonly name: string;
  readonly version: string;
  readonly license: string | undefined;
  readonly integrity: string | undefined;
  /** Paths in the lockfile of the packages that it needs. */
  readonly needs: readonly string[];
}

/** Workspaces whose build is inside another one's package, by its path: the server serves the page of the console. */
const BUILT_INTO: Readonly<Record<string, readonly string[]>> = { server: ["clients/console"] };

/**
 * Returns the production dependencies of a workspace as the lockfile has them, with the workspace itself, by path. Those of a
 * workspace that is built into it are among them: their code is in its files.
 *
 * @throws Error if the lockfile lacks one.
 */
export function productionPackages(lock: Lock, workspace: string): ReadonlyMap<string, Component> {
  const found = new Map<string, Component>();
  const queue = [workspace];
  for (const path of queue) {
    if (found.has(path)) continue;
    const { version = "", license, integrity, ...entry } = lock[path] ?? {};
    if (version === "") throw new Error(`package-lock.json lacks ${path}`);
    const installed = neededNames(entry).flatMap(({ name, optional }) => {
      const at = resolvePackage(lock, path, name);
      if (at === undefined && !optional)
        throw new Error(`package-lock.json lacks ${name}, which ${path} needs`);
      return at === undefined ? [] : [at];
    });
    const needs = [...installed, ...(BUILT_INTO[path] ?? [])];
    const name = entry.name ?? path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
    found.set(path, { name, version, license, integrity, needs });
    queue.push(...needs);
  }
  return found;
}

/** Optional dependencies are not in the image, and peers of a package that are optional are the user's. */
function neededNames(entry: LockedPackage): readonly { name: string; optional: boolean }[] {
  const isOptional = (name: string) => entry.peerDependenciesMeta?.[name]?.optional === true;
  const peers = Object.keys(entry.peerDependencies ?? {}).filter((name) => !isOptional(name));
  return [...Object.keys(entry.dependencies ?? {}), ...peers].map((name) => ({
    name,
    optional: name in (entry.optionalDependencies ?? {}),
  }));
}

/** Finds a package as Node does: in the `node_modules` of the folder and of each folder above it. */
function resolvePackage(lock: Lock, from: string, name: string): string | undefined {
  for (let dir = from; ; dir = dir.includes("/") ? dir.slice(0, dir.lastIndexOf("/")) : "") {
    const path = dir === "" ? `node_modules/${name}` : `${dir}/node_modules/${name}`;
    const entry = lock[path];
    if (entry !== undefined) return entry.link ? entry.resolved : path;
    if (dir === "") return undefined;
  }
}

/** Returns the software bill of materials of a workspace, in CycloneDX 1.6. The same for the same commit. */
export function bomOf(packages: ReadonlyMap<string, Component>, workspace: string, stage: Stage): object {
  const refOf = (path: string) => {
    const { name, version } = packages.get(path) ?? { name: path, version: "" };
    return `pkg:npm/${name.replace("@", "%40")}@${version}`;
  };
  const describe = ([path, { name, version, license, integrity }]: readonly [string, Component]) => ({
    type: path === workspace ? "application" : "library",
    "bom-ref": refOf(path),
    name,
    version,
    purl: refOf(path),
    ...(license !== undefined && { licenses: [{ expression: license }] }),
    ...(integrity !== undefined && { hashes: [hashOf(integrity)] }),
  });
  const [root, ...others] = [...packages];
  if (root === undefined) throw new Error(`${workspace} has no packages`);
  return {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    serialNumber: `urn:uuid:${uuidOf(`${stage.commit} ${workspace}`)}`,
    version: 1,
    metadata: { timestamp: stage.committedAt, component: describe(root) },
    components: [...new Map(others.map((entry) => [refOf(entry[0]), describe(entry)])).values()],
    dependencies: [...packages].map(([path, { needs }]) => ({
      ref: refOf(path),
      dependsOn: [...new Set(needs.map(refOf))],
    })),
  };
}

/** The lockfile's `sha512-<base64>` in CycloneDX' form. */
function hashOf(integrity: string): object {
  const [algorithm = "", digest = ""] = integrity.split("-");
  const alg = algorithm.replace("sha", "SHA-");
  return { alg, content: Buffer.from(digest, "base64").toString("hex") };
}

/** Returns the UUID (version 8, RFC 9562) that a text always has. */
function uuidOf(text: string): string {
  const hex = createHash("sha256").update(text).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
