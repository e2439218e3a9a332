/** How one of several things that were asked for together settled: with a value, or with an error of its own. */
export type Settled<Value> = Value | Rejected;

/** What settled with an error; a class of its own, so that no value is taken for it. */
export class Rejected {
  readonly error: unknown;
  constructor(error: unknown) {
    this.error = error;
  }
}

/**
 * How the only thing settled that was asked for.
 *
 * @throws the error that it settled with.
 */
export function onlyValue<Value>(settled: readonly Settled<Value>[]): Value {
  if (settled.length !== 1) throw new Error(`one was asked for, and ${settled.length} settled`);
  const [only] = settled as [Settled<Value>];
  if (only instanceof Rejected) throw only.error;
  return only;
}

/** Works on each value; what fails meanwhile, or had failed before, fails alone. */
export function mapSettled<Value, Made>(
  settled: readonly Settled<Value>[],
  work: (value: Value, place: number) => Made,
): Settled<Made>[] {
  return settled.map((each, place) => {
    if (each instanceof Rejected) return each;
    try {
      return work(each, place);
    } catch (error) {
      return new Rejected(error);
    }
  });
}

/** Works on all values at once, if there are any; what had failed before keeps its place. */
export async function mapTogether<Value, Made>(
  settled: readonly Settled<Value>[],
  work: (values: readonly Value[]) => Promise<readonly Settled<Made>[]>,
): Promise<readonly Settled<Made>[]> {
  const values = settled.filter((each) => !(each instanceof Rejected)) as Value[];
  const made = values.length === 0 ? [] : await work(values);
  if (values.length === settled.length) return made;
  let next = 0;
  return settled.map((each) => (each instanceof Rejected ? each : (made[next++] as Settled<Made>)));
}

/** Waits for those that take longer, for which `finish` answers a promise; those that it throws at fail, the others stay. */
export async function awaitLate<Value>(
  settled: readonly Settled<Value>[],
  finish: (value: Value) => Promise<Value> | undefined,
): Promise<readonly Settled<Value>[]> {
  const finished = [...settled];
  const late: Promise<void>[] = [];
  settled.forEach((each, place) => {
    if (each instanceof Rejected) return;
    const put = (end: Settled<Value>) => {
      finished[place] = end;
    };
    const fail = (error: unknown) => put(new Rejected(error));
    try {
      const finishing = finish(each);
      if (finishing !== undefined) late.push(finishing.then(put, fail));
    } catch (error) {
      fail(error);
    }
  });
  await Promise.all(late);
  return finished;
}
