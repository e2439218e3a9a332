import type { Pool, Runner } from "../../database/pool.ts";
import { type Deadline, onlyValue, type Settled } from "../../domain/operation.ts";
import { type Batcher, type BatcherOptions, MAX_QUEUED, StatementBatcher } from "./batcher.ts";
import type { Shard, Shards } from "./shards.ts";

/** The database of the records. */
export interface RecordsDatabase {
  readonly pool: Pool;
  /** Undefined on a plain Postgres. */
  readonly shards?: Shards | undefined;
}

/** How operations are gathered into statements, each for records of one shard. */
export interface ShardedBatcherOptions<Op, Row> extends Omit<BatcherOptions<Op, Row>, "execute"> {
  /** Returns the key of an operation's record. */
  readonly keyOf: (op: Op) => string;
  /** As BatcherOptions.execute, for operations of one shard. `run` runs the statement. */
  readonly execute: (run: Runner["run"], ops: readonly Op[]) => Promise<readonly Settled<Row>[]>;
}

/** The least number of operations that may be queued for a shard, for many small shards. */
const MIN_QUEUED_BY_SHARD = 1000;

/**
 * Creates a batcher whose statements each touch one shard. On a plain Postgres it is as `StatementBatcher`.
 *
 * Each shard has a queue of its own, with `maxInFlight` statements of one kind at most. The shards of a node take
 * turns, and no statement waits for one on another node.
 */
export function createShardedBatcher<Op, Row>(
  { pool, shards }: RecordsDatabase,
  options: ShardedBatcherOptions<Op, Row>,
): Batcher<Op, Row> {
  if (shards !== undefined) return new ShardedBatcher(shards, options);
  return new StatementBatcher({ ...options, execute: options.execute.bind(undefined, pool.run) });
}

class ShardedBatcher<Op, Row> implements Batcher<Op, Row> {
  readonly #shards: Shards;
  readonly #options: ShardedBatcherOptions<Op, Row>;
  /** By the id of their shard. */
  readonly #batchers = new Map<number, StatementBatcher<Op, Row>>();

  constructor(shards: Shards, options: ShardedBatcherOptions<Op, Row>) {
    this.#shards = shards;
    this.#options = { ...options, ...sharedObserver(options) };
  }

  async submit(op: Op, deadline: Deadline): Promise<Row> {
    return onlyValue(await this.submitAll([op], deadline));
  }

  async submitAll(ops: readonly Op[], deadline: Deadline): Promise<readonly Settled<Row>[]> {
    const keep = this.#options.createRowConverter?.();
    const settled = new Array<Settled<Row>>(ops.length);
    await Promise.all(
      Array.from(this.#byShard(ops), async ([shard, indexes]) => {
        const part = indexes.map((index) => ops[index] as Op);
        const rows = await this.#batcherOf(shard).submitPart(part, deadline, keep);
        indexes.forEach((index, i) => {
          settled[index] = rows[i] as Settled<Row>;
        });
      }),
    );
    return settled;
  }

  /** Returns the indexes of the operations of each shard. */
  #byShard(ops: readonly Op[]): ReadonlyMap<Shard, readonly number[]> {
    const indexes = new Map<Shard, number[]>();
    ops.forEach((op, index) => {
      const shard = this.#shards.of(this.#options.keyOf(op));
      const others = indexes.get(shard);
      if (others === undefined) indexes.set(shard, [index]);
      else others.push(index);
    });
    return indexes;
  }

  #batcherOf(shard: Shard): StatementBatcher<Op, Row> {
    let batcher = this.#batchers.get(shard.id);
    if (batcher === undefined) {
      batcher = new StatementBatcher({
        ...this.#options,
        execute: (ops) => this.#options.execute(this.#shards.runnerOn(shard), ops),
        turns: () => this.#shards.turnsOf(shard),
        maxQueued: Math.max(MIN_QUEUED_BY_SHARD, MAX_QUEUED / this.#shards.count),
      });
      this.#batchers.set(shard.id, batcher);
    }
    return batcher;
  }
}

/** Returns a limiter that reports the queues of all shards to the observer as one. */
function sharedObserver<Op, Row>({
  statement,
  limiter,
}: ShardedBatcherOptions<Op, Row>): Pick<BatcherOptions<Op, Row>, "limiter"> {
  const { observer } = limiter ?? {};
  if (statement === undefined || limiter === undefined || observer === undefined) return {};
  const depths: (() => number)[] = [];
  const waits = observer.queueAdded(statement, () => depths.reduce((sum, depth) => sum + depth(), 0));
  const queueAdded = (_: string, depth: () => number) => {
    depths.push(depth);
    return waits;
  };
  const { droppedByDeadline, heldToShare } = observer;
  return { limiter: { ...limiter, observer: { queueAdded, droppedByDeadline, heldToShare } } };
}
