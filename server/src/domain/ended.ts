/** How one of several things that were asked for together ended: with a value, or with an error of its own. */
export type Ended<Value> = Value | Failed;

/** What ended with an error; a class of its own, so that no value is taken for it. */
export class Failed {
  readonly error: unknown;
  constructor(error: unknown) {
    this.error = error;
  }
}

/**
 * How the only thing ended that was asked for.
 *
 * @throws the error that it ended with.
 */
export function valueOfOnly<Value>(ended: readonly Ended<Value>[]): Value {
  if (ended.length !== 1) throw new Error(`one was asked for, and ${ended.length} ended`);
  const [only] = ended as [Ended<Value>];
  if (only instanceof Failed) throw only.error;
  return only;
}

/** Works on each value; what fails meanwhile, or had failed before, fails alone. */
export function mapEach<Value, Made>(
  ended: readonly Ended<Value>[],
  work: (value: Value, place: number) => Made,
): Ended<Made>[] {
  return ended.map((each, place) => {
    if (each instanceof Failed) return each;
    try {
      return work(each, place);
    } catch (error) {
      return new Failed(error);
    }
  });
}

/** Works on all values at once, if there are any; what had failed before keeps its place. */
export async function mapTogether<Value, Made>(
  ended: readonly Ended<Value>[],
  work: (values: readonly Value[]) => Promise<readonly Ended<Made>[]>,
): Promise<readonly Ended<Made>[]> {
  const values = ended.filter((each) => !(each instanceof Failed)) as Value[];
  const made = values.length === 0 ? [] : await work(values);
  if (values.length === ended.length) return made;
  let next = 0;
  return ended.map((each) => (each instanceof Failed ? each : (made[next++] as Ended<Made>)));
}

/** Waits for those that take longer, for which `finish` answers a promise; those that it throws at fail, the others stay. */
export async function finishLate<Value>(
  ended: readonly Ended<Value>[],
  finish: (value: Value) => Promise<Value> | undefined,
): Promise<readonly Ended<Value>[]> {
  const finished = [...ended];
  const late: Promise<void>[] = [];
  ended.forEach((each, place) => {
    if (each instanceof Failed) return;
    const put = (end: Ended<Value>) => {
      finished[place] = end;
    };
    const fail = (error: unknown) => put(new Failed(error));
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
