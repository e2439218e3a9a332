/**
 * Returns a function that handles messages with the same ordering key one after the other, and others at once. The messages
 * that wait after one that is returned to the broker are returned, too, without being handled: the broker delivers all of
 * them again, in their order.
 *
 * @param settle handles a message; resolves with whether it was acknowledged, not returned.
 * @param giveBack returns a message to the broker.
 */
export function inOrder<Message extends { readonly orderingKey?: string | null | undefined }>(
  settle: (message: Message) => Promise<boolean>,
  giveBack: (message: Message) => void,
): (message: Message) => Promise<void> {
  /** The end of the last message of each ordering key that has messages here. */
  const last = new Map<string, Promise<boolean>>();

  async function settleAfter(previous: Promise<boolean>, message: Message): Promise<boolean> {
    if (await previous) return await settle(message);
    giveBack(message);
    return false;
  }

  return async (message) => {
    const { orderingKey } = message;
    if (!orderingKey) {
      await settle(message);
      return;
    }
    const previous = last.get(orderingKey);
    const settled = previous === undefined ? settle(message) : settleAfter(previous, message);
    last.set(orderingKey, settled);
    try {
      await settled;
    } finally {
      if (last.get(orderingKey) === settled) last.delete(orderingKey);
    }
  };
}
