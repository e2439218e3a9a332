import { type DescMessage, type MessageShape, toJsonString } from "@bufbuild/protobuf";
import { MAX_MESSAGE_BYTES } from "../domain/limits.ts";

/** For the message around the items, and what HTTP adds. */
const MARGIN_BYTES = 64 * 1024;

/** Of what was found, what a page shows. */
export interface ReplyPage<Item, Message> {
  readonly messages: Message[];
  /** The last item on the page, if more were found. */
  readonly last: Item | undefined;
}

/** As many of the items as the page's size and one reply allow; at least the first one. */
export function replyPage<Item, Schema extends DescMessage>(
  found: readonly Item[],
  size: number,
  schema: Schema,
  messageOf: (item: Item) => MessageShape<Schema>,
): ReplyPage<Item, MessageShape<Schema>> {
  const messages: MessageShape<Schema>[] = [];
  let bytesLeft = MAX_MESSAGE_BYTES - MARGIN_BYTES;
  for (const item of found.slice(0, size)) {
    const message = messageOf(item);
    // As JSON, which takes more than the other formats.
    bytesLeft -= Buffer.byteLength(toJsonString(schema, message)) + 1;
    if (bytesLeft < 0 && messages.length > 0) break;
    messages.push(message);
  }
  return { messages, last: messages.length < found.length ? found[messages.length - 1] : undefined };
}

/** What one look found among a bounded number of rows, and where the next one goes on. */
interface Look<Item, Place> {
  readonly items: readonly Item[];
  /** Undefined: there is nothing more to look at. */
  readonly next: Place | undefined;
}

/** Of one call; a caller who wants more asks for the next page. */
const MAX_LOOKING_MS = 1000;

/**
 * Looks again and again until so many items are found, nothing is left to look at, or the time is up; then the next look
 * goes on where this one stopped.
 */
export async function lookUntil<Item, Place>(
  count: number,
  from: Place,
  look: (from: Place, count: number) => Promise<Look<Item, Place>>,
): Promise<Look<Item, Place>> {
  const untilMs = performance.now() + MAX_LOOKING_MS;
  const items: Item[] = [];
  for (let place = from; ; ) {
    const { items: found, next } = await look(place, count - items.length);
    items.push(...found);
    if (next === undefined || items.length >= count || performance.now() >= untilMs) return { items, next };
    place = next;
  }
}
