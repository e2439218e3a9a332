/** The files that contain the version, by their paths in the repository. */
export const VERSIONED = [
  "package.json",
  "package-lock.json",
  "server/package.json",
  "clients/typescript/package.json",
  "clients/cli/package.json",
  "clients/http-proxy/package.json",
  "clients/mcp-proxy/package.json",
  "clients/python/pyproject.toml",
  "clients/go/onceward/version.go",
  "deploy/helm/onceward/Chart.yaml",
] as const;

/**
 * Returns what contradicts that everything has one version: that of the root's package.json, and of the tag if there is
 * one, which is written `v1.2.3`.
 */
export function versionProblems(texts: Readonly<Record<string, string>>, tag?: string): readonly string[] {
  const { version } = JSON.parse(texts["package.json"] ?? "{}");
  const found = Object.entries(texts).flatMap(([path, text]) =>
    versionsIn(path, text).map(([where, value]) => [`${path}: ${where}`, value] as const),
  );
  const problems = found.filter(([, value]) => value !== version);
  const lines = problems.map(([where, value]) => `${where} is ${value}, not ${version}`);
  if (tag !== undefined && tag !== `v${version}`) lines.push(`the tag ${tag} is not v${version}`);
  return lines;
}

function versionsIn(path: string, text: string): readonly (readonly [string, unknown])[] {
  if (path.endsWith("Chart.yaml")) {
    return ["version", "appVersion"].map((name) => [
      name,
      new RegExp(`^${name}: "?([^"\n]*)`, "m").exec(text)?.[1],
    ]);
  }
  // `version = "1.2.3"` of TOML, `const Version = "1.2.3"` of Go.
  if (!path.endsWith(".json")) return [["version", /^(?:const )?version = "([^"]*)"/im.exec(text)?.[1]]];
  const { version, dependencies = {}, packages = {} } = JSON.parse(text);
  // Of the lockfile, the workspaces; of a manifest, the packages of ours that it needs.
  const locked = Object.entries<{ version?: string; link?: boolean }>(packages)
    .filter(([place]) => !place.includes("node_modules"))
    .map(([place, entry]) => [place || "the root", entry.version] as const);
  const ours = Object.entries<string>(dependencies)
    .filter(([name]) => name.startsWith("@onceward/"))
    .map(([name, range]) => [name, range.replace(/^\^/, "")] as const);
  return [["version", version], ...locked, ...ours];
}
