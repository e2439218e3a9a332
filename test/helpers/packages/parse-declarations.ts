import { posix } from "node:path";

/** What a module declares of one name. */
export interface Declaration {
  readonly name: string;
  /** As the compiler wrote it, without its comments. */
  readonly text: string;
  /** Whether a comment stands above it. */
  readonly documented: boolean;
  readonly exported: boolean;
}

/** Where a name is declared; a module is called as its file, such as "inbox/once". */
export interface Place {
  readonly module: string;
  readonly name: string;
}

/** What a module's `.d.ts` declares, and what it has from the client's other modules. */
export interface Declarations {
  /** Several of one name are overloads. */
  readonly own: readonly Declaration[];
  /** By the name that they have here. */
  readonly imports: ReadonlyMap<string, Place>;
  /** By the name that they have for others. */
  readonly reexports: ReadonlyMap<string, Place>;
  /** The modules of `export * from`. */
  readonly stars: readonly string[];
}

const DECLARATION =
  /^(export )?(?:declare )?(?:abstract )?(?:class|function|const|enum|interface|type) ([\w$]+)/;
const FROM = /^(import|export) (?:type )?(\*|\{([\s\S]*)\}) ?from "(\.[^"]+)";$/;

/** Reads a `.d.ts` as TypeScript's compiler lays it out; it needs no more than that. */
export function parseDeclarations(module: string, source: string): Declarations {
  const own: Declaration[] = [];
  const imports = new Map<string, Place>();
  const reexports = new Map<string, Place>();
  const stars: string[] = [];
  for (const statement of statementsOf(source)) {
    const text = withoutComments(statement);
    const [, exported, name] = DECLARATION.exec(text) ?? [];
    if (name !== undefined) {
      own.push({ name, text, documented: statement.startsWith("/**"), exported: exported !== undefined });
      continue;
    }
    const [, verb, what, names = "", specifier] = FROM.exec(text) ?? [];
    // Another package's, or `export {}`.
    if (specifier === undefined) continue;
    const from = posix.join(posix.dirname(module), specifier).replace(/\.ts$/, "");
    if (what === "*") stars.push(from);
    const renamed = verb === "import" ? imports : reexports;
    for (const [there, here] of namesIn(names)) renamed.set(here, { module: from, name: there });
  }
  return { own, imports, reexports, stars };
}

/** Splits at the lines that end a statement: they begin without indentation, and end it with a semicolon or a brace. */
function* statementsOf(source: string): Generator<string> {
  let lines: string[] = [];
  for (const line of source.split("\n")) {
    // A comment that stands alone, such as a file's own, belongs to no statement.
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

/** `a, type B, c as d` as pairs of what it is there and what it is here. */
function namesIn(list: string): readonly (readonly [there: string, here: string])[] {
  const names = list.split(",").map((name) => name.trim().replace(/^type /, ""));
  return names.filter(Boolean).map((name) => {
    const [there = name, here = there] = name.split(" as ");
    return [there, here];
  });
}
