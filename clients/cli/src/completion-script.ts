import type { Command } from "commander";

/** A command's path, such as " records list", and the words that may follow it. */
interface CommandWords {
  readonly path: string;
  readonly words: readonly string[];
}

/** Returns a completion script for bash, or for zsh, which can run bash's. Generated from the program's commands. */
export function completionScript(program: Command, shell: "bash" | "zsh"): string {
  const globals = optionsOf(program);
  const commands = commandWordsOf(program, "", globals);
  const paths = commands.map(({ path }) => path).filter((path) => path !== "");
  const prefix = shell === "zsh" ? "#compdef onceward\nautoload -U +X bashcompinit && bashcompinit\n" : "";
  return `${prefix}_onceward() {
  local word command_path="" words=""
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$command_path $word" in
      ${paths.map((path) => `"${path}"`).join("|")}) command_path="$command_path $word" ;;
    esac
  done
  case "\${COMP_WORDS[COMP_CWORD-1]}" in
${choicesOf(program)
  .map(([flag, choices]) => `    ${flag}) words="${choices.join(" ")}" ;;`)
  .join("\n")}
  esac
  if [ -z "$words" ]; then
    case "$command_path" in
${commands.map(({ path, words }) => `      "${path}") words="${words.join(" ")}" ;;`).join("\n")}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _onceward onceward
`;
}

function commandWordsOf(command: Command, path: string, globals: readonly string[]): readonly CommandWords[] {
  const children = command.commands;
  const choices = command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices);
  const words = [...children.map((child) => child.name()), ...choices, ...optionsOf(command), ...globals];
  const own = { path, words: [...new Set(words)] };
  return [own, ...children.flatMap((child) => commandWordsOf(child, `${path} ${child.name()}`, globals))];
}

function optionsOf(command: Command): readonly string[] {
  return [...command.options.flatMap(({ long }) => (long ? [long] : [])), "--help"];
}

/** Returns the choices of the options that have choices. Options of the same name have the same choices. */
function choicesOf(command: Command): readonly (readonly [string, readonly string[]])[] {
  const own = command.options.flatMap(({ long, argChoices }) =>
    long && argChoices ? [[long, argChoices] as const] : [],
  );
  return [...new Map([...own, ...command.commands.flatMap(choicesOf)])];
}
