import { fileURLToPath } from "node:url";
import type { AdapterCommand } from "./adapter.ts";

const PYTHON = fileURLToPath(new URL("../../python/", import.meta.url));

const GO = fileURLToPath(new URL("../../go/", import.meta.url));

const SOURCE = fileURLToPath(new URL("./", import.meta.url));

/** Returns the adapter of the TypeScript client. @param source the folder of this file, or of a copy of it. */
export function typescriptAdapter(source = SOURCE): AdapterCommand {
  return {
    language: "typescript",
    program: process.execPath,
    args: ["--conditions=@onceward/source", `${source}typescript/main.ts`],
  };
}

/** Returns the adapters of the Python client. @param python a Python that has the client's dependencies. */
export function pythonAdapters(python: string): readonly AdapterCommand[] {
  const args = [`${PYTHON}conformance/adapter.py`];
  const env = { PYTHONPATH: `${PYTHON}src` };
  return [
    { language: "python", program: python, args, env },
    { language: "python-asyncio", program: python, args: [...args, "--asyncio"], env },
  ];
}

/** Returns the adapter of the Go client, which `go` builds. */
export function goAdapter(): AdapterCommand {
  return { language: "go", program: "go", args: ["run", "-C", GO, "./internal/conformance"], compiles: true };
}
