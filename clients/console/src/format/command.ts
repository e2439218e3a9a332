/**
 * Returns a word of a command line as a POSIX shell reads it: in quotes unless it is plain. A key that is pasted into a
 * terminal then stays one word, whichever characters it has.
 */
export function shellWord(text: string): string {
  return /^[A-Za-z0-9_./:@%+,=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/**
 * Returns a command with options; those without a value are left out. An argument that could be taken for an option
 * comes after `--`.
 */
export function commandLine(
  command: string,
  options: Readonly<Record<string, string>>,
  names: readonly string[] = [],
): string {
  const given = Object.entries(options).filter(([, value]) => value !== "");
  const isUnclear = names.some((name) => name.startsWith("-"));
  return [
    command,
    ...given.map(([option, value]) => `--${option} ${shellWord(value)}`),
    ...(isUnclear ? ["--"] : []),
    ...names.map(shellWord),
  ].join(" ");
}
