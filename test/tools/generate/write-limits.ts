import { writeFileSync } from "node:fs";
import * as limits from "../../../server/src/domain/limits.ts";
import { DEFAULT_POLICY } from "../../../server/src/domain/policy.ts";

/**
 * Writes the limits of the contract for programs in TypeScript that do not have its descriptors, such as a small bundle; part of
 * `npm run generate`.
 */
const FILE = new URL("../../../clients/typescript/src/gen/limits.ts", import.meta.url);

const DEFAULT_LEASE_MS = DEFAULT_POLICY.defaultLeaseMs;
const lines = Object.entries({ ...limits, DEFAULT_LEASE_MS, DEFAULT_POLICY }).flatMap(([name, value]) => {
  if (typeof value === "function") return [];
  if (value instanceof RegExp) return [`export const ${name} = ${value};`];
  const literal = typeof value === "object" ? " as const" : "";
  return [`export const ${name} = ${JSON.stringify(value)}${literal};`];
});
writeFileSync(
  FILE,
  `// Written by \`npm run generate\` from the options of proto/.\n\n${lines.sort().join("\n")}\n`,
);
