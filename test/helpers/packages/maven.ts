import { execFile } from "node:child_process";
import { promisify, stripVTControlCharacters } from "node:util";

const run = promisify(execFile);
const VERSION_TIMEOUT_MS = 30_000;
/** Version 3.8 or newer, as the README requires. */
const VERSION = /Apache Maven (3\.[89]|3\.\d\d|[4-9])/;
/**
 * Maven's words for a repository that gave no answer, and protobuf-maven-plugin's when it downloads `protoc`.
 * An artifact that the repository doesn't have is another error ("Could not find"): the pom.xml is wrong, and
 * the test fails.
 */
const NO_ANSWER = /Could not transfer|No result was returned by Aether|in offline mode/;
/** Set by `npm run test:languages`: tests need no network otherwise, but for npm's and Debian's packages. */
const MAY_DOWNLOAD = process.env.ONCEWARD_TEST_DOWNLOADS === "true";
/** A first build downloads some 30 MB and compiles 200 classes: 90 s on two busy cores, and more than 270 s on two that are oversubscribed. */
const BUILD_TIMEOUT_MS = MAY_DOWNLOAD ? 900_000 : 270_000;

/** Returns whether `mvn` is installed and new enough. */
export function hasMaven(): Promise<boolean> {
  return run("mvn", ["--version"], { timeout: VERSION_TIMEOUT_MS }).then(
    ({ stdout }) => VERSION.test(stdout),
    () => false,
  );
}

/**
 * Builds a directory's project with the artifacts of the local Maven repository; `npm run test:languages`
 * downloads those that it lacks for the build and `exec:java`. Returns false if artifacts are missing: none
 * are downloaded, or no repository answers in time.
 *
 * @throws if Maven fails for another reason, such as a program that doesn't compile.
 */
export async function buildFetching(dir: string): Promise<boolean> {
  try {
    // `exec:help` downloads the plugin that `exec:java` belongs to.
    await runMaven(dir, [...(MAY_DOWNLOAD ? [] : ["--offline"]), "compile", "exec:help"]);
    return true;
  } catch (error) {
    const { killed, stdout } = error as { killed?: boolean; stdout?: string };
    if (killed === true || NO_ANSWER.test(stdout ?? "")) return false;
    throw error;
  }
}

/** Runs Maven in a directory, and returns its output without colors. @throws if it fails. */
export async function runMaven(
  dir: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  // A run is too short for the optimizing compiler to pay off: without it, half the processor time.
  const MAVEN_OPTS = `${process.env.MAVEN_OPTS ?? ""} -XX:TieredStopAtLevel=1`;
  const options = { cwd: dir, env: { ...process.env, ...env, MAVEN_OPTS }, timeout: BUILD_TIMEOUT_MS };
  const running = run("mvn", ["--batch-mode", "--no-transfer-progress", ...args], options);
  const { stdout } = await running.catch((error) => {
    // Maven prints the reason of a failure to standard output.
    error.message += `\n${error.stdout}`;
    throw error;
  });
  return stripVTControlCharacters(stdout);
}
