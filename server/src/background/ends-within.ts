/** Returns whether the promise resolves within `limitMs`; false also if it rejects. */
export async function endsWithin(limitMs: number, promise: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const timeUp = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), limitMs);
  });
  const ended = promise.then(
    () => true,
    () => false,
  );
  const inTime = await Promise.race([ended, timeUp]);
  clearTimeout(timer);
  return inTime;
}
