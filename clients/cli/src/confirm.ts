import { EXIT, Outcome, UsageError } from "./failure.ts";
import type { Host } from "./host.ts";

/** The option of commands that ask. */
export interface YesOption {
  readonly yes?: true;
}

/**
 * Returns if it was agreed to, by `--yes` or by whoever sits there.
 *
 * @throws UsageError if there is nobody to be asked, Outcome if the answer is not yes.
 */
export async function confirm(host: Host, { yes }: YesOption, question: string): Promise<void> {
  if (yes) return;
  if (!host.isInteractive) throw new UsageError(`${question} Nobody is there to be asked: give --yes.`);
  const answer = await host.ask(`${question} [y/N] `);
  if (!/^y(es)?$/i.test(answer.trim())) throw new Outcome(EXIT.refused, "Nothing was changed.");
}
