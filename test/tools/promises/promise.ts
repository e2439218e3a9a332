/** A number that a reader is promised, and the constant that keeps the promise. */
export interface NumericPromise {
  /** The document that says it, from the root. */
  readonly document: string;
  /** How the document says it. Spaces stand for any white space, and comment marks of a proto file are ignored. */
  readonly says: string;
  /** The source file with the constant, from the root. */
  readonly file: string;
  /** The definition of the constant, such as `MAX_KEY_BYTES = 255`; for a member of an object, `maxBytes: 24 * MIB`. */
  readonly constant: string;
  /** The test file that fails when the constant is changed tenfold. */
  readonly test: string;
}

/** Returns the text of a document with every run of white space and comment marks as one space. */
export function normalised(text: string): string {
  return text.replace(/^\s*\/\/ ?/gm, " ").replace(/\s+/g, " ");
}

/** `NAME = 255`, or `name: 24 * MIB`; of a value in braces, its first number. */
const DEFINITION = /^(?<before>\w+(?: = |: )(?:\{.*?: )?)(?<value>[^{},]+)(?<after>.*)$/;

/**
 * Returns a source text whose constant is ten times as large.
 *
 * @throws Error if the definition is not in the text exactly once.
 */
export function changedTenfold(source: string, constant: string): string {
  const { before, value, after } = DEFINITION.exec(constant)?.groups ?? {};
  const pieces = source.split(constant);
  if (value === undefined || pieces.length !== 2) {
    throw new Error(`"${constant}" is in the file ${pieces.length - 1} times`);
  }
  return pieces.join(`${before}10 * (${value})${after}`);
}
