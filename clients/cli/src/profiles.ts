import { randomUUID } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { UsageError } from "./failure.ts";
import type { Host } from "./host.ts";

/** Where a service is, and a credential for it. */
export interface Profile {
  readonly address: string;
  readonly apiKey: string;
}

/** What is kept between commands. */
export interface Profiles {
  /** The one that is used where none is named. */
  readonly current: string | undefined;
  readonly byName: Readonly<Record<string, Profile>>;
}

/** `onceward/config.json` where the XDG Base Directory Specification wants configuration. */
export function profilesFile({ env, homeDir }: Host): string {
  return join(env.XDG_CONFIG_HOME || join(homeDir, ".config"), "onceward", "config.json");
}

/** None at all if there is no file. @throws UsageError for a file that is not ours. */
export async function readProfiles(host: Host): Promise<Profiles> {
  const file = profilesFile(host);
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw new UsageError(`${file} can't be read: ${error.code}.`);
  });
  if (text === undefined) return { current: undefined, byName: {} };
  const kept = parse(text);
  if (kept === undefined) throw new UsageError(`${file} is not what this program wrote; remove it.`);
  return kept;
}

/** Readable by its owner only; a reader sees the old file or the new one. */
export async function writeProfiles(host: Host, { current, byName }: Profiles): Promise<void> {
  const file = profilesFile(host);
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.${randomUUID()}`;
  try {
    const text = JSON.stringify({ current, profiles: byName }, undefined, 2);
    await writeFile(draft, `${text}\n`, { flag: "wx", mode: 0o600 });
    await rename(draft, file);
  } finally {
    await rm(draft, { force: true });
  }
}

function parse(text: string): Profiles | undefined {
  try {
    const { current, profiles } = JSON.parse(text);
    const isOurs =
      Object.values(profiles).every(isProfile) && (current === undefined || Object.hasOwn(profiles, current));
    return isOurs ? { current, byName: profiles } : undefined;
  } catch {
    return undefined;
  }
}

function isProfile(value: unknown): value is Profile {
  const { address, apiKey } = value as Partial<Profile>;
  return typeof address === "string" && typeof apiKey === "string";
}
