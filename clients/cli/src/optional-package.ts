import { EXIT, Outcome } from "./failure.ts";

/** Loads a package that is not part of the command line, which stays small. @throws Outcome that names one that is not installed. */
export async function loadOptional<Package>(name: string, load: () => Promise<Package>): Promise<Package> {
  try {
    return await load();
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND")
      throw new Outcome(EXIT.usage, `install the proxy: npm install ${name}`);
    throw error;
  }
}
