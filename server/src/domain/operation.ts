/**
 * A call's deadline. It is polled instead of awaited: code checks it before it spends resources on the call,
 * so that a late timer (a stalled event loop) cannot let an expired call through.
 */
export interface Deadline {
  /** When the deadline passes, in milliseconds of `performance.now()`. */
  readonly atMs: number;
  /** Whether the caller has cancelled the call. */
  readonly cancelled: boolean;
}

/** Returns whether the caller no longer waits: it has cancelled, or the deadline has passed. */
export function isExpired(deadline: Deadline): boolean {
  return deadline.cancelled || performance.now() >= deadline.atMs;
}

/** A kind of operation on a record, as metrics name it. */
export type OperationKind = "claim" | "complete" | "release" | "extend_lease" | "lookup";

/** How one of several operations that ran together settled: with a value, or with an error of its own. */
export type Settled<Value> = Value | Rejected;

/** An operation's error. A class, so that no value can be mistaken for it. */
export class Rejected {
  readonly error: unknown;
  constructor(error: unknown) {
    this.error = error;
  }
}

/**
 * Returns the value of a single operation.
 *
 * @throws the error that it settled with.
 */
export function onlyValue<Value>(settled: readonly Settled<Value>[]): Value {
  if (settled.length !== 1) throw new Error(`expected one operation, but ${settled.length} settled`);
  const [only] = settled as [Settled<Value>];
  if (only instanceof Rejected) throw only.error;
  return only;
}

/** Maps each value. An error that `map` throws rejects only that operation; earlier errors stay. */
export function mapSettled<Value, Mapped>(
  settled: readonly Settled<Value>[],
  map: (value: Value, index: number) => Mapped,
): Settled<Mapped>[] {
  return settled.map((each, index) => {
    if (each instanceof Rejected) return each;
    try {
      return map(each, index);
    } catch (error) {
      return new Rejected(error);
    }
  });
}

/** Returns the indexes of the items that match. */
export function indexesOf<Item>(items: readonly Item[], matches: (item: Item) => boolean): number[] {
  const indexes: number[] = [];
  items.forEach((item, index) => {
    if (matches(item)) indexes.push(index);
  });
  return indexes;
}

/** Returns a copy of `items` with those at `indexes` replaced by `others`, in order. */
export function withReplaced<Item>(
  items: readonly Item[],
  indexes: readonly number[],
  others: readonly Item[],
): Item[] {
  const all = [...items];
  indexes.forEach((index, i) => {
    all[index] = others[i] as Item;
  });
  return all;
}

/** Maps all values by one call of `map`, if there are any. Errors stay at their indexes. */
export async function mapTogether<Value, Mapped>(
  settled: readonly Settled<Value>[],
  map: (values: readonly Value[]) => Promise<readonly Settled<Mapped>[]>,
): Promise<readonly Settled<Mapped>[]> {
  const values = settled.filter((each) => !(each instanceof Rejected)) as Value[];
  const mapped = values.length === 0 ? [] : await map(values);
  if (values.length === settled.length) return mapped;
  let next = 0;
  return settled.map((each) => (each instanceof Rejected ? each : (mapped[next++] as Settled<Mapped>)));
}

/**
 * Replaces the values for which `finish` returns a promise by what the promise resolves to, and waits for all
 * of them. An error of `finish` or of its promise rejects only that operation.
 */
export async function settlePending<Value>(
  settled: readonly Settled<Value>[],
  finish: (value: Value) => Promise<Value> | undefined,
): Promise<readonly Settled<Value>[]> {
  const finished = [...settled];
  const late: Promise<void>[] = [];
  settled.forEach((each, index) => {
    if (each instanceof Rejected) return;
    const replace = (replacement: Settled<Value>) => {
      finished[index] = replacement;
    };
    const reject = (error: unknown) => replace(new Rejected(error));
    try {
      const finishing = finish(each);
      if (finishing !== undefined) late.push(finishing.then(replace, reject));
    } catch (error) {
      reject(error);
    }
  });
  await Promise.all(late);
  return finished;
}
