/** What a command sees of its process; `main.ts` is the only file that touches the real one. */
export interface Host {
  /** After the program's name. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly homeDir: string;
  /** Somebody sits at it who can be asked. */
  readonly isInteractive: boolean;
  /** Results, to standard output. */
  write(text: string): void;
  /** Errors, questions and whatever is no result, to standard error. */
  warn(text: string): void;
  /** What was typed, without its line's end. */
  ask(question: string): Promise<string>;
  /** Standard input to its end. */
  readInput(): Promise<string>;
}
