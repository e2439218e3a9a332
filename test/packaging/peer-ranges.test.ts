import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { newDir } from "../support/new-dir.ts";

const run = promisify(execFile);
const NPM_TIMEOUT_MS = 60_000;
const MANIFEST = new URL("../../clients/typescript/package.json", import.meta.url);

/** Both ends of what the client works beside, each of which its tests ran with. */
const VERSIONS = {
  oldest: {
    "@grpc/grpc-js": "1.12.0",
    "@nats-io/jetstream": "3.0.0",
    "@nestjs/common": "10.0.0",
    "@temporalio/activity": "1.9.0",
    "@temporalio/common": "1.9.0",
    "@types/amqplib": "0.8.0",
    "@types/express": "4.17.25",
    amqplib: "0.8.0",
    bullmq: "5.0.0",
    express: "4.16.0",
    fastify: "4.0.0",
    hono: "4.8.0",
    kafkajs: "2.0.0",
    rxjs: "7.1.0",
  },
  newest: {
    "@grpc/grpc-js": "1.14.7",
    "@nats-io/jetstream": "3.4.0",
    "@nestjs/common": "12.5.1",
    "@temporalio/activity": "1.24.0",
    "@temporalio/common": "1.24.0",
    "@types/amqplib": "0.10.8",
    "@types/express": "5.0.6",
    amqplib: "2.3.1",
    bullmq: "6.7.0",
    express: "5.3.0",
    fastify: "5.12.8",
    hono: "4.13.19",
    kafkajs: "2.2.4",
    rxjs: "7.8.2",
  },
  "in between": {
    "@nestjs/common": "11.1.9",
    amqplib: "1.1.1",
    bullmq: "5.81.5",
    express: "4.22.3",
    fastify: "4.29.1",
  },
};

/** Of a package.json, what npm resolves by. */
interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: object;
}

/** Writes a package without code, as npm packs one. Returns how a project depends on it. */
async function pack(dir: string, manifest: Manifest): Promise<string> {
  const home = join(dir, manifest.name);
  await mkdir(join(home, "package"), { recursive: true });
  await writeFile(join(home, "package/package.json"), JSON.stringify(manifest));
  await run("tar", ["-czf", "package.tgz", "package"], { cwd: home });
  return `file:${join(home, "package.tgz")}`;
}

/** Installs the client, and packages by the names and versions of these, into one project. @throws what npm says. */
async function install(versions: Readonly<Record<string, string>>): Promise<void> {
  const dir = await newDir();
  const { name, version, peerDependencies, peerDependenciesMeta } = JSON.parse(
    await readFile(MANIFEST, "utf8"),
  );
  const client = { name, version, peerDependencies, peerDependenciesMeta };
  const dependencies: Record<string, string> = { [name]: await pack(dir, client) };
  for (const [peer, at] of Object.entries(versions)) {
    expect(peerDependencies).toHaveProperty([peer]);
    dependencies[peer] = await pack(dir, { name: peer, version: at });
  }
  await writeFile(join(dir, "package.json"), JSON.stringify({ private: true, dependencies }));
  const args = ["install", "--package-lock-only", "--offline", "--no-audit", "--no-fund"];
  await run("npm", args, { cwd: dir, timeout: NPM_TIMEOUT_MS });
}

// npm looks at names and versions alone, so packages without code are enough, and no registry is asked.
test.each(Object.entries(VERSIONS))(
  "npm installs the client beside the %s versions of its peers",
  async (_, versions) => {
    await install(versions);
  },
);

test("npm refuses to install the client beside a version that it doesn't work with", async () => {
  // Without express in its cache, npm fails as it looks for another version.
  await expect(install({ express: "3.21.2" })).rejects.toThrow(/ERESOLVE|ENOTCACHED/);
});
