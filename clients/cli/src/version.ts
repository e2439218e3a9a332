import { createRequire } from "node:module";

const { version }: { readonly version: string } = createRequire(import.meta.url)("../package.json");

/** This package's version. */
export const VERSION = version;
