import type { Command } from "commander";

/** A command as the words that lead to it, and what may follow. */
interface Place {
  readonly path: string;
  readonly words: readonly string[];
}

/** A script for bash, or for zsh, which understands bash's. Made of the commands, so that it knows all of them. */
export function completionScript(program: Command, shell: "bash" | "zsh"): string {
  const globals = optionsOf(program);
  const places = placesOf(program, "", globals);
  const paths = places.map(({ path }) => path).filter((path) => path !== "");
  const prefix = shell === "zsh" ? "#compdef onceward\nautoload -U +X bashcompinit && bashcompinit\n" : "";
  return `${prefix}_onceward() {
  local word place="" words=""
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$place $word" in
      ${paths.map((path) => `"${path}"`).join("|")}) place="$place $word" ;;
    esac
  done
  case "\${COMP_WORDS[COMP_CWORD-1]}" in
${choicesOf(program)
  .map(([flag, choices]) => `    ${flag}) words="${choices.join(" ")}" ;;`)
  .join("\n")}
  esac
  if [ -z "$words" ]; then
    case "$place" in
${places.map(({ path, words }) => `      "${path}") words="${words.join(" ")}" ;;`).join("\n")}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _onceward onceward
`;
}

function placesOf(command: Command, path: string, globals: readonly string[]): readonly Place[] {
  const children = command.commands;
  const choices = command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices);
  const words = [...children.map((child) => child.name()), ...choices, ...optionsOf(command), ...globals];
  const own = { path, words: [...new Set(words)] };
  return [own, ...children.flatMap((child) => placesOf(child, `${path} ${child.name()}`, globals))];
}

function optionsOf(command: Command): readonly string[] {
  return [...command.options.flatMap(({ long }) => (long ? [long] : [])), "--help"];
}

/** What may follow an option, where that is known; options of one name have the same choices. */
function choicesOf(command: Command): readonly (readonly [string, readonly string[]])[] {
  const own = command.options.flatMap(({ long, argChoices }) =>
    long && argChoices ? [[long, argChoices] as const] : [],
  );
  return [...new Map([...own, ...command.commands.flatMap(choicesOf)])];
}
