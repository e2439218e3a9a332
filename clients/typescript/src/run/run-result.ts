/** What became of a run. */
export type RunResult<T> = {
  /** What the function returned, now or before. */
  readonly value: T;
  /** When the operation was completed, by the database's clock. */
  readonly completedAt: Date;
  /** When the key is forgotten: a retry after this moment is a new operation. */
  readonly expiresAt: Date;
  /**
   * False where the service could not be asked and `onUnavailable` is "proceed": it ran, and nobody remembers. Then
   * `attempt` and `fencingToken` are 0, and both times are the end of the run by this process's clock.
   */
  readonly guarded: boolean;
} & (
  | { readonly replayed: true }
  | {
      readonly replayed: false;
      /** 1 for the key's first claim, one more for each that took over. */
      readonly attempt: number;
      readonly fencingToken: bigint;
    }
);
