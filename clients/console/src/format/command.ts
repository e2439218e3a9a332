/** Control characters but the line feed, which a command substitution would drop. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const CONTROLS = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]+/g;

/**
 * Returns a word of a command line as a POSIX shell reads it: in quotes unless it is plain. A text that is pasted into a
 * terminal then stays one word, whichever characters it has. Control characters are written as octal numbers: a
 * terminal would act on them before the shell sees the quotes.
 */
export function shellWord(text: string): string {
  if (/^[A-Za-z0-9_./:@%+,=-]+$/.test(text)) return text;
  return `'${text.replaceAll("'", `'\\''`).replace(CONTROLS, (controls) => `'"$(printf '${octal(controls)}')"'`)}'`;
}

function octal(text: string): string {
  const bytes = Array.from(new TextEncoder().encode(text));
  return bytes.map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
}

/**
 * Returns a command with options; those without a value are skipped. An argument that could be taken for an option
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
