/** Rows per statement: some tens of milliseconds. */
export const BATCH_ROWS = 1000;
/** Some 10 MiB. It is reached if statements fail for long. */
const MAX_WAITING = 50_000;

/** Items that are stored one interval after they were added, so that other replicas store earlier ones first. */
export class DeferredQueue<Item> {
  readonly #onDropped: () => void;
  #due: Item[] = [];
  #added: Item[] = [];

  /** @param onDropped is called for each item that is dropped because too many wait. */
  constructor(onDropped: () => void) {
    this.#onDropped = onDropped;
  }

  add(item: Item): void {
    if (this.#added.length + this.#due.length >= MAX_WAITING) this.#onDropped();
    else this.#added.push(item);
  }

  /** Stores the items that are due, in batches; the others are due next. A failed batch is repeated by the next call. */
  async store(storeBatch: (batch: readonly Item[]) => Promise<unknown>): Promise<void> {
    while (this.#due.length > 0) {
      const batch = this.#due.slice(0, BATCH_ROWS);
      await storeBatch(batch);
      this.#due.splice(0, batch.length);
    }
    this.#due = this.#added;
    this.#added = [];
  }
}
