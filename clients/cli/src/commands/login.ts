import { ApiKey_Role } from "@onceward/client/proto";
import { type Command, InvalidArgumentError } from "commander";
import { CONSOLE_ADDRESS, consoleOrigin, type GlobalOptions, readApiKey } from "../credentials.ts";
import { UsageError } from "../failure.ts";
import type { Host } from "../host.ts";
import { type KeyRole, profilesFile, readProfiles, writeProfiles } from "../profiles.ts";
import { whoAmI } from "../who-am-i.ts";
import { command } from "./group.ts";

interface LoginOptions extends GlobalOptions {
  readonly console?: string;
}

const DEFAULT_PROFILE = "default";

const ROLES: Readonly<Record<ApiKey_Role, KeyRole | undefined>> = {
  [ApiKey_Role.UNSPECIFIED]: undefined,
  [ApiKey_Role.CALLER]: "caller",
  [ApiKey_Role.TENANT_ADMIN]: "admin",
  [ApiKey_Role.OPERATOR]: "operator",
};

/** Returns `onceward login`. */
export function loginCommand(host: Host): Command {
  return command(
    "login [profile]",
    "Asks for an API key, checks it at the service, and stores it in a profile, which comes into use. A key of another role is added to the profile's keys; a key for another address replaces them.",
    "login --address https://onceward.staging.example:50051 --console https://onceward.staging.example",
    "login staging --address https://onceward.staging.example:50051 --api-key-stdin < admin.key",
  )
    .option(
      "--console <url>",
      "the console's address, which --web opens; default: the one that the service names",
      parseConsole,
    )
    .action(async (name: string | undefined, _options: object, command: Command) => {
      const {
        address: given,
        apiKeyStdin,
        profile: named,
        console,
      }: LoginOptions = command.optsWithGlobals();
      const { current, byName } = await readProfiles(host);
      const profile = name ?? named ?? current ?? DEFAULT_PROFILE;
      const before = Object.hasOwn(byName, profile) ? byName[profile] : undefined;
      const address = given ?? before?.address ?? host.env.ONCEWARD_ADDRESS;
      if (address === undefined || !URL.canParse(address)) {
        throw new UsageError("Give --address and a URL such as http://localhost:50051.");
      }
      const apiKey = apiKeyStdin ? await readApiKey(host) : await askApiKey(host, address);
      const identity = await whoAmI({ address, apiKey });
      const role = ROLES[identity.role];
      if (role === undefined) throw new UsageError("The service gives this key no role that is known here.");
      const keys = before?.address === address ? before : { address };
      const saved = {
        ...keys,
        ...(console !== undefined && { console }),
        apiKeys: { ...keys.apiKeys, [role]: apiKey },
      };
      await writeProfiles(host, { current: profile, byName: { ...byName, [profile]: saved } });
      const of = identity.tenant === "" ? "" : ` of ${identity.tenant}`;
      host.write(
        `Signed in to ${address} as ${role}${of}. Saved profile ${profile} in ${profilesFile(host)}; it is in use.\n`,
      );
    });
}

/** Never as an argument: other users of the machine can read arguments. @throws UsageError without a terminal. */
async function askApiKey(host: Host, address: string): Promise<string> {
  if (!host.isInteractive) throw new UsageError("There is no terminal to ask on: give --api-key-stdin.");
  const apiKey = (await host.askSecret(`API key for ${address}: `)).trim();
  if (apiKey === "") throw new UsageError("No API key was typed.");
  return apiKey;
}

function parseConsole(text: string): string {
  const origin = consoleOrigin(text);
  if (origin === undefined) throw new InvalidArgumentError(`It must be ${CONSOLE_ADDRESS}.`);
  return origin;
}
