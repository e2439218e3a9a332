import { randomBytes } from "node:crypto";
import { link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { formatApiKey, generateApiKey } from "../auth/api-key.ts";

/** What `dev` makes once per clone, so that a key that was copied somewhere goes on working. */
export interface DevSecrets {
  readonly pepper: string;
  readonly callerKey: string;
  readonly adminKey: string;
}

const PEPPER_BYTES = 32;

/** Reads the secrets, or makes them. Those that start at once agree: one file is linked in, whole, and everybody reads it. */
export async function ensureDevSecrets(dataDir: string): Promise<DevSecrets> {
  const file = join(dataDir, "dev-secrets.json");
  await mkdir(dataDir, { recursive: true });
  const made: DevSecrets = {
    pepper: randomBytes(PEPPER_BYTES).toString("base64url"),
    callerKey: formatApiKey(generateApiKey()),
    adminKey: formatApiKey(generateApiKey()),
  };
  const draft = `${file}.${randomBytes(PEPPER_BYTES).toString("hex")}`;
  try {
    await writeFile(draft, `${JSON.stringify(made, undefined, 2)}\n`, { flag: "wx", mode: 0o600 });
    await link(draft, file).catch(unlessThere);
  } finally {
    await rm(draft, { force: true });
  }
  return JSON.parse(await readFile(file, "utf8"));
}

function unlessThere(error: NodeJS.ErrnoException): void {
  if (error.code !== "EEXIST") throw error;
}
