import { randomBytes } from "node:crypto";
import { link, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { formatApiKey, generateApiKey } from "../src/access/api-key.ts";

/** The folder of all files of `npm start`, in the working directory. */
export const DATA_DIR = ".onceward";

/** The secrets that `npm start` creates once per clone, so that a copied key keeps working. */
export interface DevSecrets {
  readonly pepper: string;
  readonly callerKey: string;
  readonly adminKey: string;
  readonly operatorKey: string;
}

const PEPPER_BYTES = 32;

/**
 * Reads or creates the secrets. Writes each key to a file of its own, too, for commands: `caller.key`,
 * `admin.key`, `operator.key`.
 */
export async function ensureDevSecrets(dataDir: string): Promise<DevSecrets> {
  await mkdir(dataDir, { recursive: true });
  const made = {
    pepper: randomBytes(PEPPER_BYTES).toString("base64url"),
    callerKey: newKey(),
    adminKey: newKey(),
  };
  const text = await ensureFile(join(dataDir, "dev-secrets.json"), JSON.stringify(made, undefined, 2));
  const kept: typeof made = JSON.parse(text);
  await replaceFile(join(dataDir, "caller.key"), kept.callerKey);
  await replaceFile(join(dataDir, "admin.key"), kept.adminKey);
  const operatorKey = await ensureFile(join(dataDir, "operator.key"), newKey());
  return { ...kept, operatorKey };
}

function newKey(): string {
  return formatApiKey(generateApiKey());
}

/**
 * Returns the file's contents; creates it from `text` if it is missing. Concurrent starts agree: one complete
 * file is linked, and all read it.
 */
async function ensureFile(file: string, text: string): Promise<string> {
  await fromDraft(file, text, (draft) => link(draft, file).catch(unlessThere));
  return (await readFile(file, "utf8")).trim();
}

async function replaceFile(file: string, text: string): Promise<void> {
  await fromDraft(file, text, (draft) => rename(draft, file));
}

/** Writes a complete draft that only its owner can read, and passes it to `place`. */
async function fromDraft(file: string, text: string, place: (draft: string) => Promise<void>): Promise<void> {
  const draft = `${file}.${randomBytes(PEPPER_BYTES).toString("hex")}`;
  try {
    await writeFile(draft, `${text}\n`, { flag: "wx", mode: 0o600 });
    await place(draft);
  } finally {
    await rm(draft, { force: true });
  }
}

function unlessThere(error: NodeJS.ErrnoException): void {
  if (error.code !== "EEXIST") throw error;
}
