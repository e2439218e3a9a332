import { randomBytes } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { formatApiKey, generateApiKey } from "../auth/api-key.ts";

/** What `dev` makes once per clone, so that a key that was copied somewhere goes on working. */
export interface DevSecrets {
  readonly pepper: string;
  readonly callerKey: string;
  readonly adminKey: string;
}

const PEPPER_BYTES = 32;

/** Reads the secrets, or makes them. Two that start at once agree: only one creates the file. */
export async function ensureDevSecrets(dataDir: string): Promise<DevSecrets> {
  const file = join(dataDir, "dev-secrets.json");
  await mkdir(dataDir, { recursive: true });
  const made: DevSecrets = {
    pepper: randomBytes(PEPPER_BYTES).toString("base64url"),
    callerKey: formatApiKey(generateApiKey()),
    adminKey: formatApiKey(generateApiKey()),
  };
  try {
    await writeFile(file, `${JSON.stringify(made, undefined, 2)}\n`, { flag: "wx", mode: 0o600 });
    return made;
  } catch (error) {
    if ((error as { readonly code?: unknown }).code !== "EEXIST") throw error;
    return JSON.parse(await readFile(file, "utf8"));
  }
}
