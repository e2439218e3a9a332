import { createSecretKey } from "node:crypto";
import { openEntry, sealEntry } from "./entry.ts";

/** How completions are held in memory and stored in Redis. */
export interface EntryFormat {
  /** Returns the form in which memory holds an encoded completion. */
  hold(name: string, completion: Buffer): Buffer;
  /** Returns the encoded completion of that form; undefined if it is not the one of this name. */
  reveal(name: string, held: Buffer): Buffer | undefined;
  /** Returns the entry in Redis. */
  store(name: string, held: Buffer): Buffer;
  /** Returns what memory holds of an entry from Redis; undefined if the entry was altered. */
  load(name: string, entry: Buffer): Buffer | undefined;
}

/** Returns the format in plain form, with a digest in Redis that `secret` keys. An entry of another format is refused. */
export function signedFormat(secret: string): EntryFormat {
  const key = createSecretKey(secret, "utf8");
  return {
    hold: (_, completion) => completion,
    reveal: (_, held) => held,
    store: (name, held) => sealEntry(name, held, key),
    load: (name, entry) => openEntry(name, entry, key),
  };
}
