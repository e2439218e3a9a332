import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { publint } from "publint";

/** Resolution without `exports`, of compilers before TypeScript 4.7. */
const WITHOUT_EXPORTS = "node10";
/** What `require()` finds in a package for `import` alone, such as the command line's. */
const FOR_IMPORT_ALONE = "CJSResolvesToESM";

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
    .filter(({ kind }) => kind !== FOR_IMPORT_ALONE)
    .filter((problem) => !("resolutionKind" in problem && problem.resolutionKind === WITHOUT_EXPORTS))
    .map((problem) => JSON.stringify(problem));
}
