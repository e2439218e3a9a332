import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

type Environment = Readonly<Record<string, string | undefined>>;

/** Far more than any secret has; a larger file is another file, given by mistake. */
const MAX_BYTES = 16_384;
const ENDING = "_FILE";

/** An environment in which the contents of secret files replace the variables that name the files. */
export interface ReadSecrets {
  readonly env: Environment;
  /** The files by the variables that they give a value, those with a problem included. */
  readonly files: Readonly<Record<string, string>>;
  /** One sentence for each file that cannot be used. Contains names and paths, never contents. */
  readonly problems: readonly string[];
}

/** Returns the name of the variable that can name a file with this variable's value. */
export function fileVariable(name: string): string {
  return `${name}${ENDING}`;
}

/**
 * Reads the files that variables such as `DATABASE_URL_FILE` name, as orchestrators mount secrets. Newlines
 * at a file's end are not part of the secret.
 *
 * @param names the variables that may be given by a file.
 */
export function readSecretFiles(env: Environment, names: readonly string[]): ReadSecrets {
  const result: Record<string, string | undefined> = { ...env };
  const files: Record<string, string> = {};
  const problems: string[] = [];
  for (const name of names) {
    const variable = fileVariable(name);
    const path = env[variable];
    delete result[variable];
    if (!path) continue;
    files[name] = path;
    if (env[name]) {
      problems.push(`${name} and ${variable} are both set: set one of them`);
      continue;
    }
    const read = readSecret(path);
    if (read.text !== undefined) result[name] = read.text;
    else problems.push(`${variable}: ${path} ${read.problem}`);
  }
  return { env: result, files, problems };
}

/** The text of a file, or the end of a sentence about the file. */
type ReadSecret = { readonly text: string } | { readonly text?: undefined; readonly problem: string };

/** Reads a secret's file. */
export function readSecret(path: string): ReadSecret {
  let bytes: Buffer | undefined;
  try {
    bytes = readBounded(path);
  } catch (error) {
    return { problem: `cannot be read (${(error as NodeJS.ErrnoException).code})` };
  }
  if (bytes === undefined) return { problem: "is not a regular file" };
  if (bytes.length > MAX_BYTES) return { problem: `is larger than ${MAX_BYTES} bytes` };
  if (bytes.includes(0)) return { problem: "contains a zero byte: it must be text" };
  const text = bytes.toString("utf8").replace(/[\r\n]+$/, "");
  return text === "" ? { problem: "is empty" } : { text };
}

/** Reads at most one byte more than is allowed; returns undefined for a directory, a pipe or a device. */
function readBounded(path: string): Buffer | undefined {
  // A pipe without a writer would block the open without a limit.
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if (!fstatSync(file).isFile()) return undefined;
    const buffer = Buffer.alloc(MAX_BYTES + 1);
    return buffer.subarray(0, readSync(file, buffer, 0, buffer.length, 0));
  } finally {
    closeSync(file);
  }
}
