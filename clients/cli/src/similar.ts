import { Command, CommanderError } from "commander";

/** Returns a question with the most similar names, as commander asks it for a mistyped command; empty if none is similar. */
export function didYouMean(typed: string, names: readonly string[]): string {
  const known = new Command().exitOverride().configureOutput({ outputError: () => {} });
  for (const name of names) known.command(name);
  try {
    known.parse([typed.replace(/^-+/, "")], { from: "user" });
  } catch (error) {
    const [, question] =
      error instanceof CommanderError ? (/\n?(\(Did you mean .*\))/.exec(error.message) ?? []) : [];
    if (question !== undefined) return ` ${question.slice(1, -1)}`;
  }
  return "";
}
