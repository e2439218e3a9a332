import { createHmac, timingSafeEqual } from "node:crypto";
import type { Violations } from "../messages/violations.ts";

/** Where the next page begins: the last row of this one, by the columns that the list is ordered by. */
export type Cursor = readonly string[];

/** What a token is good for: the tenant, the RPC, and everything in its request but the page's size. */
export type Scope = readonly (string | number | bigint | undefined)[];

/** Page tokens: opaque, and good for nothing but the list they came from. */
export interface PageTokens {
  write(scope: Scope, cursor: Cursor): string;
  /** Undefined for the first page. Adds a violation of `page_token` for a token that wasn't written for this scope. */
  read(scope: Scope, token: string, violations: Violations): Cursor | undefined;
}

const MAC_BYTES = 16;
const DEFAULT_PAGE_SIZE = 50;
const MAX_PAGE_SIZE = 1000;

/** A page's size: 50 if unset, and at most 1,000 (AIP-158). Adds a violation if it is negative. */
export function pageSize(asked: number, violations: Violations): number {
  if (asked < 0) violations.add("page_size", "must not be negative");
  return asked === 0 ? DEFAULT_PAGE_SIZE : Math.min(asked, MAX_PAGE_SIZE);
}

/**
 * @param secret shared by all replicas: any of them takes the token of another.
 * @param installationId as it is now: a token that was written under another one is not taken.
 */
export function createPageTokens(secret: string, installationId: () => string): PageTokens {
  const key = createHmac("sha256", secret).update("page tokens").digest();

  function mac(scope: Scope, cursor: string): Buffer {
    // JSON keeps the parts apart, whatever they hold.
    const parts = JSON.stringify([
      installationId(),
      ...scope.map((part) => (part === undefined ? null : String(part))),
      cursor,
    ]);
    return createHmac("sha256", key).update(parts).digest().subarray(0, MAC_BYTES);
  }

  return {
    write(scope, cursor) {
      const text = JSON.stringify(cursor);
      return Buffer.concat([mac(scope, text), Buffer.from(text)]).toString("base64url");
    },
    read(scope, token, violations) {
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
