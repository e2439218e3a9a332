/** Wrong answers; a run with one of them has failed, however fast it was. */
export interface Violations {
  readonly count: number;
  /** The first few, in words. */
  readonly examples: readonly string[];
  add(what: string): void;
}

const MAX_EXAMPLES = 5;

/** Starts with none. */
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
