import { createHmac, timingSafeEqual } from "node:crypto";
import { type DescMessage, type MessageShape, toJsonString } from "@bufbuild/protobuf";
import { MAX_MESSAGE_BYTES } from "../domain/limits.ts";
import { Violations } from "../domain/violations.ts";

const DEFAULT_PAGE_SIZE = 50;
const MAX_PAGE_SIZE = 1000;

/** Returns a page's size: 50 if unset, and at most 1,000 (AIP-158). Adds a violation if it is negative. */
export function pageSize(asked: number, violations: Violations): number {
  if (asked < 0) violations.add("page_size", "must not be negative");
  return asked === 0 ? DEFAULT_PAGE_SIZE : Math.min(asked, MAX_PAGE_SIZE);
}

/** The end of a page: its last row, by the columns that the list is ordered by. */
export type Cursor = readonly string[];

/** The list that a token belongs to: the tenant, the RPC, and every field of the request but the page's size. */
export type Scope = readonly (string | number | bigint | undefined)[];

/** Writes and reads page tokens, which are opaque and valid only for the list that they come from. */
export type PageTokens = ReturnType<typeof createPageTokens>;

const MAC_BYTES = 16;

/**
 * @param secret shared by all replicas: each accepts the tokens of the others.
 * @param installationId returns the current one: a token that was written under another one is refused.
 */
export function createPageTokens(secret: string, installationId: () => string) {
  const key = createHmac("sha256", secret).update("page tokens").digest();

  function mac(scope: Scope, cursor: string): Buffer {
    // JSON keeps the parts apart with any contents.
    const parts = JSON.stringify([
      installationId(),
      ...scope.map((part) => (part === undefined ? null : String(part))),
      cursor,
    ]);
    return createHmac("sha256", key).update(parts).digest().subarray(0, MAC_BYTES);
  }

  return {
    write(scope: Scope, cursor: Cursor): string {
      const text = JSON.stringify(cursor);
      return Buffer.concat([mac(scope, text), Buffer.from(text)]).toString("base64url");
    },
    /** Returns undefined for the first page. Adds a violation of `page_token` for a token of another scope. */
    read(scope: Scope, token: string, violations: Violations): Cursor | undefined {
      if (token === "") return undefined;
      const bytes = Buffer.from(token, "base64url");
      const text = bytes.subarray(MAC_BYTES).toString();
      if (bytes.length > MAC_BYTES && timingSafeEqual(mac(scope, text), bytes.subarray(0, MAC_BYTES))) {
        return JSON.parse(text);
      }
      violations.add("page_token", "must be the next_page_token of a reply to the same request");
      return undefined;
    },
  };
}

/** Reserved for the message around the items, and for what HTTP adds. */
const MARGIN_BYTES = 64 * 1024;

/**
 * Returns as many of the items as the page's size and one reply allow, at least the first one; and the last of them, if there
 * are more items.
 */
export function replyPage<Item, Schema extends DescMessage>(
  found: readonly Item[],
  size: number,
  schema: Schema,
  messageOf: (item: Item) => MessageShape<Schema>,
): { readonly messages: MessageShape<Schema>[]; readonly last: Item | undefined } {
  const messages: MessageShape<Schema>[] = [];
  let bytesLeft = MAX_MESSAGE_BYTES - MARGIN_BYTES;
  for (const item of found.slice(0, size)) {
    const message = messageOf(item);
    // As JSON, which is larger than the other formats.
    bytesLeft -= Buffer.byteLength(toJsonString(schema, message)) + 1;
    if (bytesLeft < 0 && messages.length > 0) break;
    messages.push(message);
  }
  return { messages, last: messages.length < found.length ? found[messages.length - 1] : undefined };
}

/** A list that is read page by page. `Found`: what one search of it returns. */
interface PagedList<Item, Schema extends DescMessage, Found> {
  readonly pageTokens: PageTokens;
  readonly scope: Scope;
  readonly schema: Schema;
  /** Searches at most `limit` items behind a cursor; behind none: the first ones. */
  readonly find: (after: Cursor, limit: number) => Promise<Found>;
  readonly messageOf: (item: Item) => MessageShape<Schema>;
  readonly cursorOf: (item: Item) => Cursor;
}

/** The fields of every request for a page. */
interface PageRequest {
  readonly pageSize: number;
  readonly pageToken: string;
}

/**
 * Returns a page of a list whose rows all match.
 *
 * @throws Refusal INVALID_REQUEST for a malformed size or token, with the violations that the caller found.
 */
export function listPage<Item, Schema extends DescMessage>(
  request: PageRequest,
  list: PagedList<Item, Schema, readonly Item[]>,
  violations = new Violations(),
) {
  const find = async (after: Cursor, limit: number) => ({
    items: await list.find(after, limit),
    next: undefined,
  });
  return scanPage(request, { ...list, find }, violations);
}

/**
 * Returns a page of a list that is scanned for matching rows; see `scanUntil`.
 *
 * @throws Refusal INVALID_REQUEST for a malformed size or token, with the violations that the caller found.
 */
export async function scanPage<Item, Schema extends DescMessage>(
  request: PageRequest,
  { pageTokens, scope, schema, find, messageOf, cursorOf }: PagedList<Item, Schema, Scan<Item, Cursor>>,
  violations: Violations,
): Promise<{ readonly messages: MessageShape<Schema>[]; readonly nextPageToken: string }> {
  const size = pageSize(request.pageSize, violations);
  const cursor = pageTokens.read(scope, request.pageToken, violations);
  violations.throwIfAny();
  const { items, next } = await find(cursor ?? [], size + 1);
  const { messages, last } = replyPage(items, size, schema, messageOf);
  const end = last === undefined ? next : cursorOf(last);
  return { messages, nextPageToken: end === undefined ? "" : pageTokens.write(scope, end) };
}

/** The matching items among a bounded number of rows. */
export interface Scan<Item, Position> {
  readonly items: readonly Item[];
  /** Where the next scan begins; undefined: there are no more rows. */
  readonly next: Position | undefined;
}

/** The longest time that one call scans; a caller who wants more asks for the next page. */
const MAX_SCAN_MS = 1000;

/** Scans rows until `count` items match, no rows are left, or the time is up. */
export async function scanUntil<Item, Position>(
  count: number,
  from: Position,
  scan: (from: Position, count: number) => Promise<Scan<Item, Position>>,
): Promise<Scan<Item, Position>> {
  const untilMs = performance.now() + MAX_SCAN_MS;
  const items: Item[] = [];
  for (let position = from; ; ) {
    const { items: found, next } = await scan(position, count - items.length);
    items.push(...found);
    if (next === undefined || items.length >= count || performance.now() >= untilMs) return { items, next };
    position = next;
  }
}
