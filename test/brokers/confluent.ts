import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);

const PACKAGE = "@confluentinc/kafka-javascript";
const VERSION = "1.10.1";
const CACHE = fileURLToPath(new URL("../../node_modules/.cache/onceward-confluent", import.meta.url));
/** librdkafka is compiled once, in 2 to 5 minutes. */
const BUILD_TIMEOUT_MS = 900_000;

/** `@confluentinc/kafka-javascript`, compiled for a Node of this machine. */
export interface Confluent {
  /** The Node that it is compiled for: not the one that runs the tests, whose headers npm does not have. */
  readonly node: string;
  /** The directory of the package. */
  readonly directory: string;
}

/**
 * Compiles the package and the librdkafka that it ships, once: the binaries that it downloads when it is installed come from a
 * release page. Debian 12's librdkafka lacks types that it needs.
 *
 * @throws if a compiler or a Node with its headers is missing.
 */
export async function buildConfluent(): Promise<Confluent> {
  const { node, prefix } = findNodeWithHeaders();
  const { stdout } = await run(node, ["-p", "process.versions.modules"]);
  const directory = `${CACHE}-${VERSION}-${stdout.trim()}`;
  // Libraries are found by their path, so that the directory may not be renamed: a file says that it is complete.
  const complete = join(directory, "complete");
  const built = { node, directory: join(directory, "node_modules", PACKAGE) };
  if (existsSync(complete)) return built;

  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true });
  await writeFile(
    join(directory, "package.json"),
    JSON.stringify({ private: true, allowScripts: { [PACKAGE]: true } }),
  );
  const libraries = join(directory, "librdkafka");
  const env = {
    ...process.env,
    PATH: [dirname(node), process.env.PATH].join(delimiter),
    npm_config_nodedir: prefix,
    npm_config_build_from_source: "true",
  };
  const build = (cwd: string, command: string, args: readonly string[], more: NodeJS.ProcessEnv = {}) =>
    run(command, args, { cwd, env: { ...env, ...more }, timeout: BUILD_TIMEOUT_MS, maxBuffer: 64 << 20 });
  const npm = join(dirname(node), "npm");
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund"];
  await build(directory, npm, ["install", ...flags, `${PACKAGE}@${VERSION}`]);

  const sources = join(built.directory, "deps/librdkafka");
  await build(sources, "bash", ["./configure", `--prefix=${libraries}`, "--disable-gssapi"]);
  await build(sources, "make", ["-j2", "libs"]);
  await build(sources, "make", ["-C", "src", "install"]);
  await build(sources, "make", ["-C", "src-cpp", "install"]);
  await build(directory, npm, ["rebuild", PACKAGE], {
    BUILD_LIBRDKAFKA: "0",
    CXX: `g++ -I${libraries}/include -I${libraries}/include/librdkafka`,
    LDFLAGS: `-L${libraries}/lib -Wl,-rpath,${libraries}/lib`,
  });
  await run(node, ["-e", `require(${JSON.stringify(built.directory)})`]);
  await writeFile(`${complete}.partial`, "");
  await rename(`${complete}.partial`, complete);
  return built;
}

/** Returns the first Node in the PATH whose headers are where its installation has them. @throws if there is none. */
function findNodeWithHeaders(): { readonly node: string; readonly prefix: string } {
  for (const directory of (process.env.PATH ?? "").split(delimiter)) {
    const prefix = dirname(directory);
    const node = join(directory, "node");
    if (existsSync(node) && existsSync(join(prefix, "include/node/node.h"))) return { node, prefix };
  }
  throw new Error("no Node in the PATH has its headers (Debian: libnode-dev)");
}
