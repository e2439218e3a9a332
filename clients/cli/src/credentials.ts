import { UsageError } from "./failure.ts";
import type { Host } from "./host.ts";
import { type Profile, readProfiles } from "./profiles.ts";

/** The options that every command has. */
export interface GlobalOptions {
  readonly profile?: string;
  readonly address?: string;
  readonly apiKeyStdin?: true;
  readonly json?: true;
}

/**
 * Returns the address and the API key: from the options, else from the profile that `--profile` names, else from the
 * environment, else from the current profile.
 *
 * @throws UsageError if the address or the key is missing.
 */
export async function resolveCredentials(host: Host, options: GlobalOptions): Promise<Profile> {
  const profile = await findProfile(host, options);
  const env = options.profile === undefined ? host.env : {};
  const address = options.address || env.ONCEWARD_ADDRESS || profile?.address;
  const apiKey = options.apiKeyStdin ? await readApiKey(host) : env.ONCEWARD_API_KEY || profile?.apiKey;
  if (!address) throw new UsageError(missing("address", "--address or ONCEWARD_ADDRESS"));
  if (!apiKey) throw new UsageError(missing("API key", "--api-key-stdin or ONCEWARD_API_KEY"));
  return { address, apiKey };
}

/**
 * Reads an API key from standard input, so that it is in no shell history and no process list. @throws UsageError if
 * empty.
 */
export async function readApiKey(host: Host): Promise<string> {
  if (host.isInteractive) host.warn("API key, and then Ctrl-D: ");
  const apiKey = (await host.readInput()).trim();
  if (apiKey === "") throw new UsageError("Standard input held no API key.");
  return apiKey;
}

async function findProfile(host: Host, { profile: name }: GlobalOptions): Promise<Profile | undefined> {
  const { current, byName } = await readProfiles(host);
  const chosen = name ?? current;
  const profile = chosen !== undefined && Object.hasOwn(byName, chosen) ? byName[chosen] : undefined;
  if (name !== undefined && profile === undefined) throw new UsageError(`There is no profile ${name}.`);
  return profile;
}

function missing(name: string, sources: string): string {
  return `No ${name}: give ${sources}, or store one with onceward profile set.`;
}
