import { UsageError } from "./failure.ts";
import { readTextFile } from "./text-file.ts";

/** Several times the length of an API key. */
const MAX_API_KEY_FILE_BYTES = 1024;

/** The variables that have the service's address and the API key. The server's process does not get them. */
export const OWN_VARIABLES = ["ONCEWARD_ADDRESS", "ONCEWARD_API_KEY"];

/** The address and the API key of the service. */
export interface Credentials {
  readonly address: string;
  readonly apiKey: string;
}

/** The options that replace the variables. */
export interface CredentialFlags {
  readonly address?: string;
  readonly apiKeyFile?: string;
}

/** Returns the address and the API key: from the options, else from the environment. @throws UsageError if one is missing. */
export async function resolveCredentials(
  { address, apiKeyFile }: CredentialFlags,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Credentials> {
  const apiKey = apiKeyFile === undefined ? env.ONCEWARD_API_KEY : await readApiKey(apiKeyFile);
  const at = address ?? env.ONCEWARD_ADDRESS;
  if (!at) throw new UsageError("No address: give --address or ONCEWARD_ADDRESS.");
  if (!apiKey) throw new UsageError("No API key: give --api-key-file or ONCEWARD_API_KEY.");
  return { address: at, apiKey };
}

async function readApiKey(file: string): Promise<string> {
  const apiKey = (await readTextFile(file, "API key", MAX_API_KEY_FILE_BYTES)).trim();
  if (apiKey === "") throw new UsageError(`The API key's file ${file} is empty.`);
  return apiKey;
}
