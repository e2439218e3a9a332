import { partsOf } from "./invisible.ts";

/**
 * Returns a word of a command line as a POSIX shell reads it: in quotes unless it is plain. A text that is pasted into a
 * terminal then stays one word, whichever characters it has. Control characters and those that are not seen are written as
 * octal numbers: a terminal would act on them before the shell sees the quotes, and a person would not read what is run.
 */
export function shellWord(text: string): string {
  if (/^[A-Za-z0-9_./:@%+,=-]+$/.test(text)) return text;
  const parts = partsOf(text).map(({ text: part, isInvisible }) =>
    isInvisible ? `'"$(printf '${octal(part)}')"'` : part.replaceAll("'", `'\\''`),
  );
  return `'${parts.join("")}'`;
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
