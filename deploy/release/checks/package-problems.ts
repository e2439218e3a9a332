import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { publint } from "publint";

/** Of what `require()` and its types would find; the packages are for `import` alone. */
const COMMONJS = new Set(["node10", "node16-cjs"]);

/** Returns the problems that publint finds in a packed package. */
export async function publishProblems(tarball: Uint8Array): Promise<readonly string[]> {
  // A copy whose buffer contains nothing else.
  const { buffer } = new Uint8Array(tarball);
  const { messages } = await publint({ pack: { tarball: buffer as ArrayBuffer }, strict: true });
  return messages.map(({ code, path }) => `${code} at ${path.join(".")}`);
}

/** Returns the entries of a packed package whose types a compiler does not find, or finds wrong. */
export async function typeProblems(tarball: Uint8Array): Promise<readonly string[]> {
  const archive = createPackageFromTarballData(new Uint8Array(tarball));
  const result = await checkPackage(archive, { excludeEntrypoints: ["./inbox.sql"] });
  if (!("problems" in result)) return ["there are no types"];
  return result.problems
    .filter((problem) => !("resolutionKind" in problem && COMMONJS.has(problem.resolutionKind)))
    .map((problem) => JSON.stringify(problem));
}
