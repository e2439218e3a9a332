import { Argument, type Command } from "commander";
import { completionScript } from "../completion-script.ts";
import type { Host } from "../host.ts";
import { command } from "./group.ts";

/** Returns `onceward completion`. */
export function completionCommand(host: Host, program: () => Command): Command {
  return command(
    "completion",
    "Prints a script that makes a shell complete commands and options.",
    "completion bash > ~/.local/share/bash-completion/completions/onceward",
    "completion zsh > ~/.zsh/completions/_onceward",
  )
    .addArgument(new Argument("<shell>", "which shell").choices(["bash", "zsh"]))
    .action((shell: "bash" | "zsh") => host.write(completionScript(program(), shell)));
}
