import { fileURLToPath } from "node:url";
import type { AdapterCommand } from "./adapter.ts";

const SOURCE = fileURLToPath(new URL("./", import.meta.url));

/** Returns the adapter of the TypeScript client. @param source the folder of this file, or of a copy of it. */
export function typescriptAdapter(source = SOURCE): AdapterCommand {
  return {
    language: "typescript",
    program: process.execPath,
    args: ["--conditions=@onceward/source", `${source}typescript/main.ts`],
  };
}
