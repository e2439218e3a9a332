import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile, rename } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { buildConfluent, type Confluent } from "./confluent.ts";

const run = promisify(execFile);

const POM = fileURLToPath(new URL("pom.xml", import.meta.url));
const CACHE = fileURLToPath(new URL("../../node_modules/.cache/onceward-brokers", import.meta.url));
/** 70 MB, the first time. */
const DOWNLOAD_TIMEOUT_MS = 600_000;

/** The directory of the brokers' jars, which Maven downloads once; empty, and a line says so: they are not available. */
export const BROKER_JARS = await fetchJars().catch((error: unknown) => {
  process.stderr.write(
    `Tests with real Kafka and ElasticMQ are skipped; they need java (17 or later), mvn and Maven Central: ${error}\n`,
  );
  return "";
});

/** Compiles Confluent's package once. Undefined, and a line says so: it is not available. */
export async function buildConfluentIfPossible(): Promise<Confluent | undefined> {
  try {
    return await buildConfluent();
  } catch (error) {
    process.stderr.write(
      `Tests with @confluentinc/kafka-javascript are skipped; its build needs g++, make, python3, and a Node with headers: ${error}\n`,
    );
    return undefined;
  }
}

async function fetchJars(): Promise<string> {
  await run("java", ["-version"]);
  const hash = createHash("sha256").update(await readFile(POM));
  const jars = `${CACHE}-${hash.digest("hex").slice(0, 12)}`;
  if (existsSync(jars)) return jars;
  const partial = `${jars}.partial`;
  const copy = ["dependency:copy-dependencies", `-DoutputDirectory=${partial}`];
  await run("mvn", ["-B", "-q", "-f", POM, ...copy], { signal: AbortSignal.timeout(DOWNLOAD_TIMEOUT_MS) });
  await rename(partial, jars);
  return jars;
}
