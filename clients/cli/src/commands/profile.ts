import type { Command } from "commander";
import { choiceOption } from "../choices.ts";
import { type GlobalOptions, readApiKey } from "../credentials.ts";
import { EXIT, Outcome, UsageError } from "../failure.ts";
import type { Host } from "../host.ts";
import {
  KEY_ROLES,
  type KeyRole,
  keysOf,
  noProfile,
  type Profile,
  type Profiles,
  profilesFile,
  readProfiles,
  writeProfiles,
} from "../profiles.ts";
import { renderFacts, renderTable } from "../table.ts";
import { printableJson } from "../terminal.ts";
import { command, group } from "./group.ts";

interface SetOptions extends GlobalOptions {
  readonly role?: KeyRole;
}

const ROLES = Object.fromEntries(KEY_ROLES.map((role) => [role, role])) as Record<KeyRole, KeyRole>;

/** Returns `onceward profile …`: stored addresses and API keys. */
export function profileCommands(host: Host): Command {
  return group("profile", [
    setCommand(host),
    command("list", "Lists profiles, without their keys.", "profile list").action(
      async (_options: object, command: Command) => {
        const { json }: GlobalOptions = command.optsWithGlobals();
        const { current, byName } = await readProfiles(host);
        const listed = Object.entries(byName).map(([name, { address }]) => ({
          name,
          address,
          inUse: name === current,
        }));
        host.write(json ? `${printableJson(listed, 2)}\n` : renderList(listed));
      },
    ),
    showCommand(host),
    command("use <profile>", "Makes a profile the current one.", "profile use staging").action(
      async (name: string) => {
        const { byName } = await findProfile(host, name);
        await writeProfiles(host, { current: name, byName });
        host.write(`Profile ${name} is in use.\n`);
      },
    ),
    command("remove <profile>", "Removes a profile and its keys.", "profile remove staging").action(
      async (name: string) => {
        const { current, byName } = await findProfile(host, name);
        const { [name]: _, ...others } = byName;
        await writeProfiles(host, {
          current: current === name ? undefined : current,
          byName: others,
        });
        host.write(`Removed profile ${name}.\n`);
      },
    ),
  ]);
}

function setCommand(host: Host): Command {
  return command(
    "set <profile>",
    "Stores an address and an API key under a name. The first profile becomes the current one. With --role the key is added to the profile's other keys, and each command uses the key of the role that it needs; without --role it is the profile's only key.",
    "profile set staging --address https://onceward.staging.example:50051 --api-key-stdin < admin.key",
    "profile set staging --role caller --api-key-stdin < caller.key",
  )
    .addOption(choiceOption("--role <role>", "add the key for commands of this role", ROLES, ROLE_ALIASES))
    .action(async (name: string, _options: object, command: Command) => {
      const { address: given, apiKeyStdin, role }: SetOptions = command.optsWithGlobals();
      const { current = name, byName } = await readProfiles(host);
      const before = role !== undefined && Object.hasOwn(byName, name) ? byName[name] : undefined;
      if (role !== undefined && given === undefined && before === undefined)
        throw new UsageError(`${noProfile(name, { byName })} A new one needs --address.`);
      const address = given ?? before?.address;
      if (address === undefined || !URL.canParse(address)) {
        throw new UsageError("Give --address and a URL such as http://localhost:50051.");
      }
      // Never as an argument: other users of the machine can read arguments.
      if (!apiKeyStdin) throw new UsageError("Give --api-key-stdin, and the API key on standard input.");
      const apiKey = await readApiKey(host);
      const profile: Profile =
        role === undefined
          ? { address, apiKey }
          : { ...before, address, apiKeys: { ...before?.apiKeys, [role]: apiKey } };
      await writeProfiles(host, {
        current,
        byName: { ...byName, [name]: profile },
      });
      const use = current === name ? "; it is in use" : `; onceward profile use ${name} takes it into use`;
      host.write(`Saved profile ${name} in ${profilesFile(host)}${use}.\n`);
    });
}

/** The contract's name. */
const ROLE_ALIASES = { tenant_admin: "admin" } as const;

function showCommand(host: Host): Command {
  return command(
    "show [profile]",
    "Shows a profile, or the current one: its address and the ids of its keys, without their secrets.",
    "profile show",
    "profile show staging --json",
  ).action(async (given: string | undefined, _options: object, command: Command) => {
    const { json }: GlobalOptions = command.optsWithGlobals();
    const { current } = await readProfiles(host);
    const name = given ?? current;
    if (name === undefined) throw new Outcome(EXIT.notFound, "No profile is in use.");
    const { address, keys } = await readKeys(host, name);
    const file = profilesFile(host);
    const inUse = name === current;
    host.write(
      json
        ? `${printableJson({ name, address, inUse, file, keys }, 2)}\n`
        : renderFacts([
            ["profile", name],
            ["address", address],
            ["in use", inUse ? "yes" : "no"],
            ["file", file],
            ...keys.map(({ role, key }) => [`key: ${role}`, key] as const),
          ]),
    );
  });
}

async function readKeys(host: Host, name: string) {
  const { byName } = await findProfile(host, name);
  const profile = byName[name] as Profile;
  const keys = keysOf(profile).map(([role, key]) => ({ role, key: redact(key) }));
  return { address: profile.address, keys };
}

/** Returns a key without its secret. Only an API key has an id; of a token nothing is shown. */
function redact(key: string): string {
  const [, id] = /^ow_([a-z0-9]{16})_/.exec(key) ?? [];
  return id === undefined ? "…" : `ow_${id}_…`;
}

function renderList(listed: readonly { name: string; address: string; inUse: boolean }[]): string {
  const rows = listed.map(({ name, address, inUse }) => [name, inUse ? "yes" : "", address]);
  return renderTable(["PROFILE", "IN USE", "ADDRESS"], rows, undefined, [undefined, undefined, "key"]);
}

async function findProfile(host: Host, name: string): Promise<Profiles> {
  const profiles = await readProfiles(host);
  if (Object.hasOwn(profiles.byName, name)) return profiles;
  throw new Outcome(EXIT.notFound, noProfile(name, profiles));
}
