import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { type Lock, productionPackages } from "../../deploy/release/sbom.ts";

const lockfile = new URL("../../package-lock.json", import.meta.url);
const { packages: lock } = JSON.parse(readFileSync(lockfile, "utf8")) as { packages: Lock };

test("the command line installs the client, commander and a parser of YAML, and nothing else", () => {
  const names = (workspace: string) =>
    [...productionPackages(lock, workspace).values()].map(({ name }) => name);
  const client = names("clients/typescript");
  const own = names("clients/cli").filter((name) => !client.includes(name));
  expect(own.sort()).toEqual(["@onceward/cli", "commander", "yaml"]);
});
