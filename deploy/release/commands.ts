import { execFile } from "node:child_process";
import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const runFile = promisify(execFile);
/** Only a program that hangs reaches it; npm may download packages. */
const TIMEOUT_MS = 300_000;
const MAX_OUTPUT_BYTES = 2 ** 26;
/** Debian's directories of programs for administrators, which other users do not have in PATH. */
const ADMIN_DIRS = ["/usr/sbin", "/sbin"];

/** The repository's folder. */
export const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** Runs a program in a folder, and returns its standard output. @throws Error with its output if it fails. */
export async function run(
  dir: string,
  [program = "", ...args]: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const options = {
    cwd: dir,
    env: { ...process.env, ...env },
    timeout: TIMEOUT_MS,
    maxBuffer: MAX_OUTPUT_BYTES,
  };
  try {
    return (await runFile(program, args, options)).stdout;
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
    throw new Error(`${program} ${args.join(" ")} failed:\n${stdout}${stderr}`.trim(), { cause: error });
  }
}

/** Returns the path of an installed program; undefined: it is not installed. */
export async function findProgram(name: string): Promise<string | undefined> {
  for (const dir of [...(process.env.PATH ?? "").split(delimiter), ...ADMIN_DIRS]) {
    const file = join(dir, name);
    if (await isExecutable(file)) return file;
  }
  return undefined;
}

function isExecutable(file: string): Promise<boolean> {
  return access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
}
