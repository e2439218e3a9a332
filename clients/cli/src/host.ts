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
