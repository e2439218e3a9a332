import type { Command } from "commander";
import { type GlobalOptions, readApiKey } from "../credentials.ts";
import { EXIT, Outcome, UsageError } from "../failure.ts";
import type { Host } from "../host.ts";
import { type Profiles, profilesFile, readProfiles, writeProfiles } from "../profiles.ts";
import { renderTable } from "../table.ts";
import { command, group } from "./group.ts";

/** Returns `onceward profile …`: stored addresses and API keys. */
export function profileCommands(host: Host): Command {
  return group("profile", "stored addresses and API keys", [
    command(
      "set <name>",
      "Stores an address and an API key under a name. The first profile becomes the current one.",
      "profile set staging --address https://onceward.staging.example:50051 --api-key-stdin < admin.key",
    ).action(async (name: string, _options: object, command: Command) => {
      const { address, apiKeyStdin }: GlobalOptions = command.optsWithGlobals();
      if (address === undefined || !URL.canParse(address)) {
        throw new UsageError("Give --address and a URL such as http://localhost:50051.");
      }
      // Never as an argument: other users of the machine can read arguments.
      if (!apiKeyStdin) throw new UsageError("Give --api-key-stdin, and the API key on standard input.");
      const { current = name, byName } = await readProfiles(host);
      const profile = { address, apiKey: await readApiKey(host) };
      await writeProfiles(host, {
        current,
        byName: { ...byName, [name]: profile },
      });
      const use = current === name ? "; it is in use" : `; onceward profile use ${name} takes it into use`;
      host.write(`Kept profile ${name} in ${profilesFile(host)}${use}.\n`);
    }),
    command("list", "Lists profiles, without their keys.", "profile list").action(
      async (_options: object, command: Command) => {
        const { json }: GlobalOptions = command.optsWithGlobals();
        const { current, byName } = await readProfiles(host);
        const listed = Object.entries(byName).map(([name, { address }]) => ({
          name,
          address,
          inUse: name === current,
        }));
        host.write(json ? `${JSON.stringify(listed, undefined, 2)}\n` : renderList(listed));
      },
    ),
    command("use <name>", "Makes a profile the current one.", "profile use staging").action(
      async (name: string) => {
        const { byName } = await findProfile(host, name);
        await writeProfiles(host, { current: name, byName });
        host.write(`Profile ${name} is in use.\n`);
      },
    ),
    command("remove <name>", "Removes a profile and its key.", "profile remove staging").action(
      async (name: string) => {
        const { current, byName } = await findProfile(host, name);
        const { [name]: _, ...kept } = byName;
        await writeProfiles(host, {
          current: current === name ? undefined : current,
          byName: kept,
        });
        host.write(`Removed profile ${name}.\n`);
      },
    ),
  ]);
}

function renderList(listed: readonly { name: string; address: string; inUse: boolean }[]): string {
  const rows = listed.map(({ name, address, inUse }) => [name, address, inUse ? "in use" : ""]);
  return renderTable(["PROFILE", "ADDRESS", ""], rows);
}

async function findProfile(host: Host, name: string): Promise<Profiles> {
  const profiles = await readProfiles(host);
  if (Object.hasOwn(profiles.byName, name)) return profiles;
  throw new Outcome(EXIT.notFound, `There is no profile ${name}.`);
}
