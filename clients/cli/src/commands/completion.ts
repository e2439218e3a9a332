import { Argument, type Command } from "commander";
import { choiceParser } from "../choices.ts";
import { createTenantAdmin } from "../clients.ts";
import { completions, type NameSources, WORDS_COMMAND } from "../completion.ts";
import { completionScript, SHELLS, type Shell } from "../completion-script.ts";
import { type GlobalOptions, resolveCredentials } from "../credentials.ts";
import type { Host } from "../host.ts";
import { namespaceNames } from "../known-names.ts";
import { readProfiles } from "../profiles.ts";
import { hasControls } from "../terminal.ts";
import { command } from "./group.ts";

/** The longest time for the service's names: a person waits for them after a keystroke. */
const NAMES_TIMEOUT_MS = 1000;
/** The most namespaces of each kind that are offered. */
const MAX_NAMESPACES = 200;

/** Returns `onceward completion`. */
export function completionCommand(host: Host): Command {
  const shells = Object.fromEntries(SHELLS.map((shell) => [shell, shell]));
  return command(
    "completion",
    "Prints a script that makes a shell complete commands, options, profiles and namespaces.",
    "completion bash > ~/.local/share/bash-completion/completions/onceward",
    "completion zsh > ~/.zsh/completions/_onceward",
    "completion fish > ~/.config/fish/completions/onceward.fish",
  )
    .addArgument(new Argument("<shell>", "which shell").choices(SHELLS).argParser(choiceParser(shells)))
    .action((shell: Shell) => host.write(completionScript(shell)));
}

/** Returns the command that completion scripts run. It prints nothing if it can't find out, and never fails. */
export function completionWordsCommand(host: Host, program: Command): Command {
  return command(
    `${WORDS_COMMAND} [words...]`,
    "Prints the words that may follow; completion scripts run it.",
    `${WORDS_COMMAND} -- records list --sta`,
  ).action(async (typed: readonly string[]) => {
    const found = await completions(program, typed, sourcesOf(host));
    // Each word is a line, and a name with a control character can't be typed.
    const words = found.filter((word) => !hasControls(word));
    host.write(words.map((word) => `${word}\n`).join(""));
  });
}

function sourcesOf(host: Host): NameSources {
  // Without profiles or a service there are no names to offer; an error in the middle of a line would only disturb.
  const none = () => [];
  return {
    profiles: () => readProfiles(host).then(({ byName }) => Object.keys(byName), none),
    namespaces: (globals) => readNamespaces(host, globals).catch(none),
  };
}

async function readNamespaces(host: Host, globals: GlobalOptions): Promise<readonly string[]> {
  const client = await createTenantAdmin(await resolveCredentials(host, globals, "admin"));
  try {
    const call = { signal: AbortSignal.timeout(NAMES_TIMEOUT_MS) };
    return (await namespaceNames(client, call, MAX_NAMESPACES)).items;
  } finally {
    client.close();
  }
}
