/** Words of one command of a shell, without its redirections and the variables that it sets. */
export type Words = readonly string[];

/** One token: a comment, a redirection with its file, an end of a command, or a word with quotes and substitutions. */
const TOKEN =
  /(?<gap>[ \t]+|\\\n *)|(?<comment>#.*)|(?<redirection>\d*(?:<<<|>>|[<>])&?\s*\S+)|(?<end>\n|;|\|\|?|&&?)|(?<word>(?:'[^']*'|"(?:\\.|[^"\\])*"|\$\([^()]*\)|\\.|[^\s'";|&<>\\])+)/gy;

/**
 * Splits text of a shell into its commands. Knows what the pages use: quotes, `$(…)` without parentheses inside, pipes, lists,
 * redirections, comments, and functions on one line, of which it returns the body.
 *
 * @throws Error at text that it does not know.
 */
export function commandsOf(text: string): readonly Words[] {
  const body = text.replace(/^\w+\(\) \{ (.*?);? \}$/gm, "$1");
  const commands: string[][] = [[]];
  let at = 0;
  for (const { 0: token, index, groups = {} } of body.matchAll(TOKEN)) {
    at = index + token.length;
    if (groups.end !== undefined) commands.push([]);
    if (groups.word !== undefined) commands.at(-1)?.push(unquote(token));
  }
  if (at !== body.length) throw new Error(`not understood: ${body.slice(at)}`);
  return commands.map(withoutVariables).filter((words) => words.length > 0);
}

function unquote(word: string): string {
  return word.replace(
    /'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)/g,
    (_, single, double, escaped) => single ?? double ?? escaped,
  );
}

function withoutVariables(words: Words): Words {
  const first = words.findIndex((word) => !/^\w+=/.test(word));
  return first === -1 ? [] : words.slice(first);
}
