import { EXIT, Outcome, UsageError } from "./failure.ts";
import { printable } from "./terminal.ts";

/** A command's view of its process. Only `main.ts` uses the real one. */
export interface Host {
  /** The arguments after the program's name. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly homeDir: string;
  /** Whether a person at a terminal can answer questions. */
  readonly isInteractive: boolean;
  /** Whether a person sees results as they are written, and no program reads them. */
  readonly isTerminal: boolean;
  /** The characters of the terminal's line; undefined: results go elsewhere. */
  readonly width?: number | undefined;
  /** Writes results, to standard output. */
  write(text: string): void;
  /** Writes the headings of a table, to standard output: in bold on a terminal that shows colours. */
  writeHeading(text: string): void;
  /** Writes errors, questions and remarks, to standard error. */
  warn(text: string): void;
  /** Asks a question. Resolves with the typed line, without its line break. */
  ask(question: string): Promise<string>;
  /** As `ask`, without showing what is typed. */
  askSecret(question: string): Promise<string>;
  /** Opens an address of http or https in a browser, if the machine has one; no shell reads it. */
  openBrowser(url: string): void;
  /** Reads standard input to its end. @throws UsageError if it has more than `maxBytes`. */
  readInput(maxBytes: number): Promise<string>;
}

/** Returns the host, which writes every text as `printable` returns it, because a server or a caller may have written it. */
export function printing(host: Host): Host {
  return {
    ...host,
    write: (text) => host.write(printable(text)),
    writeHeading: (text) => host.writeHeading(printable(text)),
    warn: (text) => host.warn(printable(text)),
    ask: (question) => host.ask(printable(question)),
    askSecret: (question) => host.askSecret(printable(question)),
  };
}

/** The option of commands that ask for confirmation. */
export interface YesOption {
  readonly yes?: true;
}

/**
 * Returns if `--yes` was given, or the answer to the question is yes.
 *
 * @param typed what must be typed instead of yes, where something is lost: its name. Undefined: nothing is lost.
 * @throws UsageError if there is no terminal, Outcome if the answer is another one.
 */
export async function confirm(
  host: Host,
  { yes }: YesOption,
  question: string,
  typed?: string,
): Promise<void> {
  if (yes) return;
  if (!host.isInteractive) throw new UsageError(`${question} There is no terminal to ask on: give --yes.`);
  const asked = typed === undefined ? "[y/N]" : `Type ${typed} to confirm:`;
  const answer = (await host.ask(`${question} ${asked} `)).trim();
  const isConfirmed = typed === undefined ? /^y(es)?$/i.test(answer) : answer === typed;
  if (!isConfirmed) throw new Outcome(EXIT.refused, "Nothing was changed.");
}
