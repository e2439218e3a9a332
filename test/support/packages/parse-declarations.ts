import { posix } from "node:path";

/** A declaration of a name in a module. */
export interface Declaration {
  readonly name: string;
  /** The compiler's text without comments. */
  readonly text: string;
  /** The compiler's text, with its comments. */
  readonly source: string;
  /** Whether a comment precedes it. */
  readonly documented: boolean;
  readonly exported: boolean;
}

/** The place of a name's declaration; a module is named like its file, such as "inbox/once". */
export interface Place {
  readonly module: string;
  readonly name: string;
}

/** The declarations of a module's `.d.ts`, and its imports and re-exports from the client's other modules. */
export interface Declarations {
  /** Several of one name are overloads. */
  readonly own: readonly Declaration[];
  /** By their names in this module. */
  readonly imports: ReadonlyMap<string, Place>;
  /** By their exported names. */
  readonly reexports: ReadonlyMap<string, Place>;
  /** The modules of `export * from`. */
  readonly stars: readonly string[];
}

const DECLARATION =
  /^(export )?(?:declare )?(?:abstract )?(?:class|function|const|enum|interface|type) ([\w$]+)/;
const FROM = /^(import|export) (?:type )?(\*|\{([\s\S]*)\}) ?from "(\.[^"]+)";$/;

/** Parses a `.d.ts` in the layout of TypeScript's compiler; other layouts are not supported. */
export function parseDeclarations(module: string, source: string): Declarations {
  const own: Declaration[] = [];
  const imports = new Map<string, Place>();
  const reexports = new Map<string, Place>();
  const stars: string[] = [];
  for (const statement of statementsOf(source)) {
    const text = withoutComments(statement);
    const [, exported, name] = DECLARATION.exec(text) ?? [];
    if (name !== undefined) {
      own.push({
        name,
        text,
        source: statement,
        documented: statement.startsWith("/**"),
        exported: exported !== undefined,
      });
      continue;
    }
    const [, verb, what, names = "", specifier] = FROM.exec(text) ?? [];
    // An import of another package, or `export {}`.
    if (specifier === undefined) continue;
    const from = posix.join(posix.dirname(module), specifier).replace(/\.ts$/, "");
    if (what === "*") stars.push(from);
    const renamed = verb === "import" ? imports : reexports;
    for (const [there, here] of namesIn(names)) renamed.set(here, { module: from, name: there });
  }
  return { own, imports, reexports, stars };
}

/**
 * Splits source at the lines that end a statement: they are not indented, and end with a semicolon or are a
 * brace.
 */
function* statementsOf(source: string): Generator<string> {
  let lines: string[] = [];
  for (const line of source.split("\n")) {
    // A comment before another comment, such as a file's, belongs to no statement.
    if (line.startsWith("/**") && lines.length > 0) lines = [];
    if (line !== "") lines.push(line);
    if (/^[^\s/*].*;$/.test(line) || line === "}") {
      yield lines.join("\n");
      lines = [];
    }
  }
}

function withoutComments(statement: string): string {
  return statement.replace(/^[ ]*\/\*\*(?:[^*]|\*(?!\/))*\*\/\n/gm, "");
}

/**
 * Returns the names in `a, type B, c as d` as pairs of the name in the other module and the name in this one.
 */
function namesIn(list: string): readonly (readonly [there: string, here: string])[] {
  const names = list.split(",").map((name) => name.trim().replace(/^type /, ""));
  return names.filter(Boolean).map((name) => {
    const [there = name, here = there] = name.split(" as ");
    return [there, here];
  });
}
