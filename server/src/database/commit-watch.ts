/**
 * Knows whether commits hang, as they do while the only synchronous standby is gone. Reads succeed then. Postgres keeps the session of
 * such a commit, with its locks, also after its client has left: a replica that replaced each of its connections would take those of
 * all others in time.
 */
export class CommitWatch {
  #hang = false;
  readonly #kept = new Set<() => void>();

  /** Whether commits hang, by the last heartbeat. */
  get hang(): boolean {
    return this.#hang;
  }

  /** Notes the number of the service's commits that have waited for a standby for longer than any takes. */
  see(waitingCommits: number): void {
    this.#hang = waitingCommits > 0;
    if (!this.#hang) this.releaseAll();
  }

  /** Calls `release` once commits do not hang: until then the session that a connection has left keeps the connection's place. */
  afterHang(release: () => void): void {
    if (this.#hang) this.#kept.add(release);
    else release();
  }

  /** Releases all places, for a pool that closes. */
  releaseAll(): void {
    for (const release of this.#kept) release();
    this.#kept.clear();
  }
}
