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
 * Where to call and as whom: what the options say, else the profile that `--profile` names, else the environment, else the
 * profile that is in use.
 *
 * @throws UsageError if something is missing.
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

/** From standard input, so that it stands in no history and no list of processes. @throws UsageError if it is empty. */
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

function missing(what: string, how: string): string {
  return `No ${what}: give ${how}, or keep one with onceward profile set.`;
}
