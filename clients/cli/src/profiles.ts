import { randomUUID } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { UsageError } from "./failure.ts";
import type { Host } from "./host.ts";
import { didYouMean } from "./similar.ts";

/** The roles of API keys, as commands need them. */
export const KEY_ROLES = ["caller", "admin", "operator"] as const;
export type KeyRole = (typeof KEY_ROLES)[number];

/** A service's address, and the API keys for it. */
export interface Profile {
  readonly address: string;
  /** The origin of the console, for `--web`. */
  readonly console?: string;
  /** The key for commands whose role has no key of its own. */
  readonly apiKey?: string;
  /** The keys that were stored with their role. */
  readonly apiKeys?: Readonly<Partial<Record<KeyRole, string>>>;
}

/** The stored profiles. */
export interface Profiles {
  /** The profile that is used unless another is named. */
  readonly current: string | undefined;
  readonly byName: Readonly<Record<string, Profile>>;
}

/**
 * Returns the path of `onceward/config.json`, in the configuration directory of the XDG Base Directory Specification.
 */
export function profilesFile({ env, homeDir }: Host): string {
  return join(env.XDG_CONFIG_HOME || join(homeDir, ".config"), "onceward", "config.json");
}

/** Reads the profiles; none if there is no file. @throws UsageError for a file that this program did not write. */
export async function readProfiles(host: Host): Promise<Profiles> {
  const file = profilesFile(host);
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw new UsageError(`${file} can't be read: ${error.code}.`);
  });
  if (text === undefined) return { current: undefined, byName: {} };
  const stored = parse(text);
  if (stored === undefined) throw new UsageError(`${file} was not written by this program; remove it.`);
  return stored;
}

/** Returns the error about a profile that does not exist, with the most similar one. */
export function noProfile(name: string, { byName }: Pick<Profiles, "byName">): string {
  return `There is no profile ${name}.${didYouMean(name, Object.keys(byName))}`;
}

/** Returns the profile's keys with their roles; "any" is the key for commands whose role has no key of its own. */
export function keysOf({ apiKey, apiKeys = {} }: Profile): readonly (readonly [KeyRole | "any", string])[] {
  const own = KEY_ROLES.flatMap((role) => {
    const key = apiKeys[role];
    return key === undefined ? [] : [[role, key] as const];
  });
  return apiKey === undefined ? own : [...own, ["any", apiKey]];
}

/** Writes the profiles, readable by the owner only. The file is replaced at once, never half-written. */
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
  const { address, apiKey, apiKeys = {}, console = "" } = value as Partial<Profile>;
  const keys = [...(apiKey === undefined ? [] : [apiKey]), ...Object.values(apiKeys)];
  if (typeof console !== "string") return false;
  return typeof address === "string" && keys.length > 0 && keys.every((key) => typeof key === "string");
}
