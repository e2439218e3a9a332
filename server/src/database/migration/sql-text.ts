/**
 * What may contain a semicolon or a value: a comment, a text (`e'…'` with backslashes), a quoted name, a
 * dollar-quoted text. One that does not end reaches to the end of the SQL. Comments within comments are not
 * recognised.
 * https://www.postgresql.org/docs/current/sql-syntax-lexical.html
 */
const COMMENT = /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/;
const TEXT = /(?<![\w$])[eE]'(?:[^'\\]|\\[\s\S]|'')*(?:'|$)|'(?:[^']|'')*(?:'|$)/;
const NAME = /"(?:[^"]|"")*(?:"|$)/;
const DOLLAR_QUOTED = /\$((?:[A-Za-z_]\w*)?)\$[\s\S]*?(?:\$\1\$|$)/;
const NUMBER = /(?<![\w$])\d[\w.]*/;

function anyOf(...parts: readonly RegExp[]): RegExp {
  return new RegExp(parts.map(({ source }) => source).join("|"), "g");
}

const STATEMENT_PARTS = anyOf(DOLLAR_QUOTED, COMMENT, TEXT, NAME, /;/);
const VALUE_PARTS = anyOf(DOLLAR_QUOTED, COMMENT, TEXT, NAME, NUMBER);

/**
 * Splits SQL at the semicolons that end statements. Bodies of functions have to be quoted (`$$ … $$`): those
 * of `begin atomic` are split.
 *
 * @returns the statements without their semicolons; none is empty or consists of comments alone.
 */
export function splitStatements(sql: string): readonly string[] {
  const ends = [...sql.matchAll(STATEMENT_PARTS)].filter(([part]) => part === ";").map(({ index }) => index);
  const starts = [0, ...ends.map((end) => end + 1)];
  return starts
    .map((start, i) => sql.slice(start, ends[i]).trim())
    .filter((statement) => withoutComments(statement) !== "");
}

/** Returns a statement in one line, without comments. */
export function withoutComments(sql: string): string {
  return oneLine(sql.replace(STATEMENT_PARTS, (part) => (isComment(part) ? " " : part)));
}

/**
 * Returns a statement in one line, with `?` in place of each text and number, and without comments: what a
 * stranger's statement may show of itself in a log or at a terminal.
 */
export function withoutValues(sql: string): string {
  return oneLine(
    sql.replace(VALUE_PARTS, (part) => (part.startsWith('"') ? part : isComment(part) ? " " : "?")),
  );
}

function isComment(part: string): boolean {
  return part.startsWith("--") || part.startsWith("/*");
}

/** Also replaces control characters, which a terminal would obey. */
function oneLine(text: string): string {
  return text.replace(/[\s\p{C}]+/gu, " ").trim();
}
