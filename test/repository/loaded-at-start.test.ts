import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const MAIN = fileURLToPath(new URL("../../server/src/main.ts", import.meta.url));

/** An import or export that is executed when its file is loaded; `import()` and types are not. */
const STATIC = /^(?:import|export)\s+(?!type\s)(?:[\w\s{},*$]+\s+from\s+)?"([^"]+)";/gm;

/** Returns the packages that a program loads when it starts, without those that they load. */
async function packagesOf(
  file: string,
  seen = new Set<string>(),
  found = new Set<string>(),
): Promise<Set<string>> {
  if (seen.has(file)) return found;
  seen.add(file);
  const text = await readFile(file, "utf8");
  for (const [, path = ""] of text.matchAll(STATIC)) {
    if (path.startsWith(".")) await packagesOf(join(dirname(file), path), seen, found);
    else if (!path.startsWith("node:")) found.add(path.split("/", path.startsWith("@") ? 2 : 1).join("/"));
  }
  return found;
}

test("issuer tokens, sign-in and tracing are loaded only where they are configured", async () => {
  expect([...(await packagesOf(MAIN))].sort()).toEqual([
    "@bufbuild/protobuf",
    "@connectrpc/connect",
    "@connectrpc/connect-node",
    "ioredis",
    "lru-cache",
    "pg",
    "pino",
    "prom-client",
    "valibot",
  ]);
});
