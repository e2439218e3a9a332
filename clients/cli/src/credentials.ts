import { UsageError } from "./failure.ts";
import type { Host } from "./host.ts";
import { type KeyRole, keysOf, noProfile, type Profile, readProfiles } from "./profiles.ts";

/** More than any API key, and than a token of an issuer. */
const MAX_KEY_BYTES = 65_536;

/** The options that every command has. */
export interface GlobalOptions {
  readonly profile?: string;
  readonly address?: string;
  readonly apiKeyStdin?: true;
  readonly json?: true;
}

/** The address and the API key of a connection. */
export interface Credentials {
  readonly address: string;
  readonly apiKey: string;
}

/**
 * Returns the address and the API key: from the options, else from the profile that `--profile` names, else from the
 * environment, else from the current profile.
 *
 * @param role chooses among the keys of a profile; undefined: its first key.
 * @throws UsageError if the address or the key is missing.
 */
export async function resolveCredentials(
  host: Host,
  options: GlobalOptions,
  role?: KeyRole,
): Promise<Credentials> {
  const { address, keys } = await resolveKeys(host, options);
  const key = keys.find(([of]) => of === role) ?? keys.find(([of]) => of === "any");
  const [, apiKey] = (role === undefined ? keys[0] : key) ?? [];
  if (apiKey !== undefined) return { address, apiKey };
  throw new UsageError(
    `The profile has no ${role} key: add one with onceward profile set NAME --role ${role} --api-key-stdin.`,
  );
}

/** Returns the address and every API key, with their roles, from the same sources. @throws UsageError if one is missing. */
export async function resolveKeys(host: Host, options: GlobalOptions) {
  const profile = await findProfile(host, options);
  const env = options.profile === undefined ? host.env : {};
  const address = options.address || env.ONCEWARD_ADDRESS || profile?.address;
  if (!address) throw new UsageError(missing("address", "--address or ONCEWARD_ADDRESS"));
  const given = options.apiKeyStdin ? await readApiKey(host) : env.ONCEWARD_API_KEY;
  const keys = given ? ([["any", given]] as const) : profile && keysOf(profile);
  if (!keys) throw new UsageError(missing("API key", "--api-key-stdin or ONCEWARD_API_KEY"));
  return { address, keys };
}

/** Returns a hint if a call's API key is the environment's, which comes before the current profile's; else "". */
export function keySource(host: Host, { profile, apiKeyStdin }: GlobalOptions): string {
  if (profile !== undefined || apiKeyStdin || !host.env.ONCEWARD_API_KEY) return "";
  return " The API key is that of the environment variable ONCEWARD_API_KEY, which comes before the profile in use: unset it, or give --profile NAME.";
}

/**
 * Returns the address of the console that is stored with the profile that `--profile` names, else in the environment, else with the
 * current profile; undefined: none is.
 */
export async function storedConsole(host: Host, options: GlobalOptions): Promise<string | undefined> {
  const profile = await findProfile(host, options);
  const env = options.profile === undefined ? host.env : {};
  return env.ONCEWARD_CONSOLE_ORIGIN || profile?.console;
}

/** What a console's address must be. */
export const CONSOLE_ADDRESS = "a URL of http or https, such as https://onceward.example";

/** Returns the origin of a console's address; undefined unless it is one of http or https without a user. */
export function consoleOrigin(address: string): string | undefined {
  const url = URL.parse(address);
  const isAllowed = url !== null && /^https?:$/.test(url.protocol) && url.username + url.password === "";
  return isAllowed ? url.origin : undefined;
}

/**
 * Reads an API key from standard input, so that it is in no shell history and no process list. @throws UsageError if
 * empty.
 */
export async function readApiKey(host: Host): Promise<string> {
  if (host.isInteractive) host.warn("API key, and then Ctrl-D: ");
  const apiKey = (await host.readInput(MAX_KEY_BYTES)).trim();
  if (apiKey === "") throw new UsageError("Standard input held no API key.");
  return apiKey;
}

async function findProfile(host: Host, { profile: name }: GlobalOptions): Promise<Profile | undefined> {
  const { current, byName } = await readProfiles(host);
  const chosen = name ?? current;
  const profile = chosen !== undefined && Object.hasOwn(byName, chosen) ? byName[chosen] : undefined;
  if (name !== undefined && profile === undefined) throw new UsageError(noProfile(name, { byName }));
  return profile;
}

function missing(name: string, sources: string): string {
  return `No ${name}: give ${sources}, or store one with onceward profile set.`;
}
