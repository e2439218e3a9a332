import { WORDS_COMMAND } from "./completion.ts";

/*
 * No library: of those that are kept (July 2026), @bomb.sh/tab 0.0.21 runs `eval` on the typed words and expands the offered ones
 * with `compgen -W`, and @pnpm/tabtab 0.5.4 offers words unquoted; omelette's last change is of 2022. Names of namespaces come from
 * callers: one like "$(rm -rf ~)" must be inserted as it is.
 */

/** The shells for which there is a completion script. */
export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

/** Returns a script that makes a shell ask this program for the words that may follow. */
export function completionScript(shell: Shell): string {
  return SCRIPTS[shell];
}

/** bash inserts a word as it is, so that it is quoted here; zsh and fish quote it themselves. */
const SCRIPTS: Readonly<Record<Shell, string>> = {
  bash: `_onceward() {
  local word
  COMPREPLY=()
  while IFS= read -r word; do
    COMPREPLY+=("$(printf %q "$word")")
  done < <(onceward ${WORDS_COMMAND} -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _onceward onceward
`,
  zsh: `#compdef onceward
_onceward() {
  local -a found
  found=("\${(@f)$(onceward ${WORDS_COMMAND} -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  compadd -- $found
}
if [ "$funcstack[1]" = _onceward ]; then _onceward "$@"; else compdef _onceward onceward; fi
`,
  fish: `complete -c onceward -f -a '(onceward ${WORDS_COMMAND} -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
`,
};
