import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { withLock } from "../../../server/dev/embedded/lock.ts";

const run = promisify(execFile);
/** A first build of Helm compiles 1,000 packages: four minutes on two free cores. */
const INSTALL_TIMEOUT_MS = 1_500_000;
const CACHE = fileURLToPath(new URL("../../../node_modules/.cache/chart-tools/", import.meta.url));

const HELM = { module: "helm.sh/helm/v4/cmd/helm", version: "v4.3.1" };
const KUBECONFORM = { module: "github.com/yannh/kubeconform/cmd/kubeconform", version: "v0.8.0" };
const SCHEMAS = { package: "kubernetes-validate", version: "1.37.0" };
/** The oldest version of the chart's `kubeVersion`, and the newest of which there are schemas. */
export const KUBERNETES_VERSIONS = ["1.29", "1.37"] as const;

/** Programs that check the chart. */
export interface ChartTools {
  readonly helm: string;
  readonly kubeconform: string;
  /** A folder with a folder of JSON schemas for each of `KUBERNETES_VERSIONS`. */
  readonly schemas: string;
}

let installing: Promise<ChartTools | undefined> | undefined;

/**
 * Installs the tools into `node_modules/.cache`: the programs with `go install`, the schemas with `pip`. Each
 * version is installed once. Returns undefined if one cannot be installed, or may not be downloaded
 * (`ONCEWARD_TEST_DOWNLOADS=false`), and prints why.
 */
export function installChartTools(): Promise<ChartTools | undefined> {
  installing ??= install().catch((error: Error) => {
    process.stderr.write(`Tests with Helm are skipped: ${error.message.trim().split("\n").at(-1)}\n`);
    return undefined;
  });
  return installing;
}

async function install(): Promise<ChartTools> {
  if (process.env.ONCEWARD_TEST_DOWNLOADS === "false") throw new Error("ONCEWARD_TEST_DOWNLOADS is false");
  const helm = await once(`helm-${HELM.version}`, (dir) => goInstall(HELM, dir));
  const kubeconform = await once(`kubeconform-${KUBECONFORM.version}`, (dir) => goInstall(KUBECONFORM, dir));
  const schemas = await once(`schemas-${SCHEMAS.version}`, installSchemas);
  return { helm: join(helm, "helm"), kubeconform: join(kubeconform, "kubeconform"), schemas };
}

/** Fills a folder of the cache unless it exists. It gets its name when it is complete. */
async function once(name: string, fill: (dir: string) => Promise<unknown>): Promise<string> {
  const dir = join(CACHE, name);
  if (existsSync(dir)) return dir;
  await mkdir(dirname(dir), { recursive: true });
  // Two test files need the tools, each in a process of its own: the second waits for the first one's.
  await withLock(`${dir}.lock`, INSTALL_TIMEOUT_MS, async () => {
    if (existsSync(dir)) return;
    const unfinished = await mkdtemp(`${dir}-`);
    try {
      await fill(unfinished);
      await rename(unfinished, dir);
    } finally {
      await rm(unfinished, { recursive: true, force: true });
    }
  });
  return dir;
}

function goInstall({ module, version }: typeof HELM, dir: string): Promise<unknown> {
  const env = { ...process.env, GOBIN: dir, CGO_ENABLED: "0" };
  const args = ["install", "-ldflags=-s -w", `${module}@${version}`];
  return run("nice", ["go", ...args], { env, timeout: INSTALL_TIMEOUT_MS });
}

/** Installs the strict schemas of the package, in a form in which kubeconform finds one from the other. */
async function installSchemas(dir: string): Promise<void> {
  const packages = join(dir, "packages");
  const args = [
    "-m",
    "pip",
    "install",
    "--quiet",
    "--no-deps",
    "--no-compile",
    "--disable-pip-version-check",
  ];
  await run("python3", [...args, "--target", packages, `${SCHEMAS.package}==${SCHEMAS.version}`], {
    timeout: INSTALL_TIMEOUT_MS,
  });
  const all = join(packages, "kubernetes_validate/kubernetes-json-schema");
  for (const version of KUBERNETES_VERSIONS) {
    const schemas = join(dir, version);
    await cp(join(all, `v${version}.0-local-strict`), schemas, { recursive: true });
    for (const file of await readdir(schemas)) {
      // Without its `$id`, which is a URL, references to other schemas lead to files.
      const { $id: _, ...schema } = JSON.parse(await readFile(join(schemas, file), "utf8"));
      const text = JSON.stringify(schema).replaceAll('"/api/_definitions.json#', '"_definitions.json#');
      await writeFile(join(schemas, file), text);
    }
  }
  await rm(packages, { recursive: true });
}
