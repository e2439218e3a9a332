/** Wrong answers; a run with one of them fails, however fast it was. */
export interface Violations {
  readonly count: number;
  /** Descriptions of the first few. */
  readonly examples: readonly string[];
  add(what: string): void;
}

const MAX_EXAMPLES = 5;

/** @see Violations */
export function createViolations(): Violations {
  const examples: string[] = [];
  let count = 0;
  return {
    examples,
    get count() {
      return count;
    },
    add(what) {
      count++;
      if (examples.length < MAX_EXAMPLES) examples.push(what);
    },
  };
}
