import { globSync } from "node:fs";
import { fileURLToPath } from "node:url";

const FOLDER = fileURLToPath(new URL("../../clients/typescript/examples/", import.meta.url));

/** The names of the programs in `clients/typescript/examples/`. */
export const EXAMPLES: readonly string[] = globSync("{*,temporal/charge}.ts", { cwd: FOLDER })
  .map((file) => file.replace(/\.ts$/, ""))
  .filter((name) => !/(^|-)setup$/.test(name))
  .sort();

/** Returns the file of an example. */
export function exampleFile(name: string): string {
  return `${FOLDER}${name}.ts`;
}

if (import.meta.main) {
  const [name = ""] = process.argv.splice(2, 1);
  if (!EXAMPLES.includes(name)) {
    console.error(`npm run example -- NAME: ${EXAMPLES.join(", ")}`);
    process.exit(2);
  }
  await import(exampleFile(name));
}
