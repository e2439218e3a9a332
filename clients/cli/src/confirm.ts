import { EXIT, Outcome, UsageError } from "./failure.ts";
import type { Host } from "./host.ts";
import type { Output } from "./output.ts";

/** The option of commands that ask for confirmation. */
export interface YesOption {
  readonly yes?: true;
}

/** What is asked before a change. */
export interface Confirmation {
  /** What follows, in sentences. */
  readonly effect?: string | undefined;
  readonly question: string;
  /** What must be typed instead of yes, where something is lost or refused: its name. Undefined: yes is enough. */
  readonly typed?: string | undefined;
}

/**
 * Shows what a change does, and returns if `--yes` was given, or the answer to the question is yes.
 *
 * @throws UsageError if there is no terminal, Outcome if the answer is another one.
 */
export async function confirm(
  { host, output }: { readonly host: Host; readonly output: Output },
  { yes }: YesOption,
  { effect, question, typed }: Confirmation,
): Promise<void> {
  if (effect !== undefined) output.remark(`${effect.trimEnd()}\n`);
  if (yes) return;
  if (!host.isInteractive) throw new UsageError(`${question} There is no terminal to ask on: give --yes.`);
  const asked = typed === undefined ? "[y/N]" : `Type ${typed} to confirm:`;
  const answer = (await host.ask(`${question} ${asked} `)).trim();
  const isConfirmed = typed === undefined ? /^y(es)?$/i.test(answer) : answer === typed;
  if (!isConfirmed) throw new Outcome(EXIT.refused, "Nothing was changed.");
}
