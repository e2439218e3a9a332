import { InvalidRequestError } from "../errors/catalogue.ts";
import { refusedField, truncateUtf8 } from "../errors/violations.ts";
import { base64Url, sha256 } from "../wire/bytes.ts";
import type { Omissions } from "./omissions.ts";

/** Long enough for any usual path; names of members may have any length. */
const MAX_SHOWN_PATH_BYTES = 256;

/** A value as plain JSON, and the bodies within it. JSON has no form for bodies: `json` holds null in their place. */
export interface PlainValue {
  readonly json: unknown;
  readonly bodies: readonly Body[];
}

/** A body's path (JSON Pointer), its type, and its content as JSON: bodies with the same content are equal. */
export type Body = readonly [path: string, type: string, content: unknown];

/**
 * Returns the digest of a file's content.
 *
 * @param where describes the file in an error, such as "a File at /upload".
 */
export type FileDigest = (file: Blob, where: string) => string;

/** Where a value is read: what else it may have than JSON values, and the errors of parts that are refused. */
interface Use {
  /** Begins the description of each error. */
  readonly rule: string;
  /** Undefined: bodies are refused. */
  readonly digestOf?: FileDigest;
  /** Whether instances of classes count by their own members, if these show all of their content. */
  readonly takesInstances: boolean;
  /** Returns the error of a part whose content is at fault, such as a lone surrogate. */
  readonly refused: (description: string) => Error;
  /** Returns the error of a part whose type is at fault, such as a Map. */
  readonly unsupported: (description: string, remedy?: string) => Error;
}

/**
 * Reads a value as JSON.stringify does: `toJSON` is called, a member that is undefined or a symbol is omitted, and
 * is null in an array. Unlike JSON.stringify, refuses what JSON would omit or change: a Map, an Error, an instance of a
 * class without `toJSON`, NaN, a number that may have been rounded, a lone surrogate.
 *
 * @throws InvalidRequestError with the path of the first part that is neither a JSON value nor a body.
 */
export function plainValue(value: unknown, omissions: Omissions, digestOf: FileDigest): PlainValue {
  const reader = new Reader({
    rule: "must be a JSON value, bytes or a body, ",
    digestOf,
    takesInstances: false,
    refused: refusedFingerprint,
    unsupported: (description, remedy) => unsupportedFingerprint(description, { remedy }),
  });
  const json = reader.read(value, omissions);
  return { json, bodies: reader.bodies };
}

/**
 * Reads a value by the rule of {@link plainValue}, but bodies are refused, and an instance of a class counts by its own members
 * if nothing shows that it has other content. @throws the error of `refused`, for a description such as "it has a Map at /lines".
 */
export function jsonValue(value: unknown, refused: (description: string) => Error): unknown {
  const unsupported: Use["unsupported"] = (description, remedy) =>
    refused(remedy === undefined ? description : `${description}; ${remedy}`);
  return new Reader({ rule: "it ", takesInstances: true, refused, unsupported }).read(value);
}

/** Returns the error of a refused fingerprint. */
export function refusedFingerprint(description: string, cause?: unknown): InvalidRequestError {
  return refusedField("fingerprint", description, cause);
}

/**
 * The error of a value of a type that has no fingerprint, such as a Map: the program that passes it has to change. Every
 * other refused fingerprint has a fault in its content, such as a lone surrogate, which may come from a request.
 */
export class UnsupportedFingerprintType extends InvalidRequestError {}

/** Returns the error of a value of a type that has no fingerprint. @param remedy what to pass instead. */
export function unsupportedFingerprint(
  description: string,
  { remedy, cause }: { readonly remedy?: string | undefined; readonly cause?: unknown } = {},
): UnsupportedFingerprintType {
  const violations = [{ field: "fingerprint", description }];
  const message = `fingerprint ${description}${remedy === undefined ? "" : `; ${remedy}`}`;
  return new UnsupportedFingerprintType(message, { violations, cause });
}

/**
 * Whether a number may stand for another one that no double holds, such as 2^53 for 2^53 + 1, and is written with digits that
 * are not its own. From 10^21 JSON has an exponent, which promises no digits.
 */
function mayBeRounded(value: number): boolean {
  return Math.abs(value) > Number.MAX_SAFE_INTEGER && Math.abs(value) < 1e21;
}

/** What a program can pass instead of a value of the type. */
function remedyFor(value: object): string {
  if (value instanceof Map) return "pass Object.fromEntries(map)";
  if (value instanceof Set) return "pass [...set]";
  if ("then" in value) return "await it";
  return "pass an object with the fields that count, such as { ...value }, or add a toJSON method";
}

class Reader {
  readonly bodies: Body[] = [];
  readonly #use: Use;
  readonly #path: (string | number)[] = [];
  readonly #ancestors = new Set<object>();

  constructor(use: Use) {
    this.#use = use;
  }

  read(value: unknown, omissions?: Omissions): unknown {
    switch (typeof value) {
      case "boolean":
        return value;
      case "string":
        // As UTF-8, each lone surrogate becomes U+FFFD, and different texts become equal.
        if (!value.isWellFormed()) throw this.#refused("a text with a lone surrogate");
        return value;
      case "number":
        if (!Number.isFinite(value)) throw this.#refused(`${value}`);
        if (mayBeRounded(value)) throw this.#refused("a number beyond 2^53 - 1", "pass it as text");
        return value;
      case "object":
        return value === null ? null : this.#readObject(value, omissions);
      case "bigint":
        // Some programs add a toJSON to BigInt.
        if (hasToJson(value)) return this.read(value.toJSON());
        throw this.#unsupported("a BigInt");
      default:
        if (value === undefined) throw this.#refused("undefined");
        throw this.#unsupported(`a ${typeof value}`);
    }
  }

  // Few calls per level, because the stack limits how deeply a value may be nested.
  #readObject(value: object, omissions: Omissions | undefined): unknown {
    if (this.#ancestors.has(value)) throw this.#unsupported("a circular reference");
    this.#ancestors.add(value);
    let json: unknown;
    // Before toJSON, which some runtimes add to bodies.
    const { digestOf, takesInstances } = this.#use;
    const body = digestOf && this.#bodyOf(value, digestOf);
    if (body !== undefined) {
      this.bodies.push([this.#pointer(), ...body]);
      json = null;
    } else if (value instanceof Date && Number.isNaN(value.getTime())) {
      throw this.#refused("an invalid Date");
    } else if (hasToJson(value)) json = this.read(value.toJSON(), omissions);
    else if (Array.isArray(value)) json = this.#elementsOf(value);
    else if (value instanceof Uint8Array) json = Object.fromEntries(value.entries());
    else if (isPlainObject(value) || (takesInstances && showsItsContent(value)))
      json = this.#membersOf(value, omissions);
    else throw this.#unsupported(`a ${typeName(value)}`, remedyFor(value));
    this.#ancestors.delete(value);
    return json;
  }

  #elementsOf(values: readonly unknown[]): unknown[] {
    if (!this.#use.takesInstances && prototypesOf(values) > 2)
      throw this.#unsupported(`a ${typeName(values)}`, "pass [...array]");
    if (Object.keys(values).length !== values.length) {
      throw this.#unsupported("an array with holes or named members");
    }
    const elements: unknown[] = [];
    for (const [index, value] of values.entries()) {
      this.#path.push(index);
      elements.push(isAbsent(value) ? null : this.read(value));
      this.#path.pop();
    }
    return elements;
  }

  #membersOf(value: object, omissions: Omissions | undefined): unknown {
    const members: [string, unknown][] = [];
    for (const [name, member] of Object.entries(value)) {
      const omission = omissions?.get(name);
      if (omission === "whole" || isAbsent(member)) continue;
      if (!name.isWellFormed()) throw this.#refused("a member's name with a lone surrogate");
      this.#path.push(name);
      members.push([name, this.read(member, omission)]);
      this.#path.pop();
    }
    // Not by assignment: a member may be named "__proto__".
    return Object.fromEntries(members);
  }

  /**
   * Returns the type and content of a body; undefined for any other object. Subclasses may hold more, so they are
   * refused.
   */
  #bodyOf(value: object, digestOf: FileDigest): [type: string, content: unknown] | undefined {
    if (isExactly(value, globalThis.ArrayBuffer)) {
      return ["ArrayBuffer", base64Url(sha256(new Uint8Array(value)))];
    }
    if (isExactly(value, globalThis.URLSearchParams)) return ["URLSearchParams", [...value]];
    if (isExactly(value, globalThis.FormData)) {
      const entryOf = (name: string, entry: string | File) =>
        typeof entry === "string" ? [name, entry] : [name, ...this.#fileOf(entry, digestOf)];
      return ["FormData", [...value].map(([name, entry]) => entryOf(name, entry))];
    }
    if (isExactly(value, globalThis.File) || isExactly(value, globalThis.Blob)) {
      return [typeName(value), this.#fileOf(value, digestOf)];
    }
    return undefined;
  }

  /** Leaves out the time of modification: in a parsed body it is the time when the body was received. */
  #fileOf(file: Blob, digestOf: FileDigest): [name: string | null, type: string, digest: string] {
    const digest = digestOf(file, this.#where(`a ${typeName(file)}`));
    return ["name" in file ? String(file.name) : null, file.type, digest];
  }

  #refused(what: string, remedy?: string): Error {
    const description = this.#describe(what);
    return this.#use.refused(remedy === undefined ? description : `${description}; ${remedy}`);
  }

  #unsupported(what: string, remedy?: string): Error {
    return this.#use.unsupported(this.#describe(what), remedy);
  }

  #describe(what: string): string {
    const verb = this.#path.length === 0 ? "is" : "has";
    return `${this.#use.rule}${verb} ${this.#where(what)}`;
  }

  #where(what: string): string {
    if (this.#path.length === 0) return what;
    return `${what} at ${truncateUtf8(this.#pointer(), MAX_SHOWN_PATH_BYTES)}`;
  }

  /** Returns the path as a JSON Pointer (RFC 6901). */
  #pointer(): string {
    const escaped = this.#path.map((step) => `${step}`.replaceAll("~", "~0").replaceAll("/", "~1"));
    return escaped.map((step) => `/${step}`).join("");
  }
}

/** Returns whether JSON leaves the value out of an object, and writes it as null in an array. */
function isAbsent(value: unknown): boolean {
  return value === undefined || typeof value === "symbol";
}

function hasToJson(value: object | bigint): value is typeof value & { toJSON(): unknown } {
  return "toJSON" in Object(value) && typeof Object(value).toJSON === "function";
}

/**
 * Plain objects of other realms, such as a test runner's, are plain, too. Objects with a tag, such as Math, are not.
 */
function isPlainObject(value: object): boolean {
  return prototypesOf(value) <= 1 && Object.prototype.toString.call(value) === "[object Object]";
}

/**
 * Returns whether an instance's own members are all of its content, as far as an object shows it. They are not if it is built in, can
 * be iterated or awaited (a query), or has getters, which read content that is elsewhere, or if there are none.
 */
function showsItsContent(value: object): boolean {
  if (Object.prototype.toString.call(value) !== "[object Object]" || Object.keys(value).length === 0)
    return false;
  if (Symbol.iterator in value || Symbol.asyncIterator in value || "then" in value) return false;
  let prototype = Object.getPrototypeOf(value);
  // The last one is Object.prototype, of any realm.
  for (let next = Object.getPrototypeOf(prototype); next !== null; next = Object.getPrototypeOf(next)) {
    const members = Object.values(Object.getOwnPropertyDescriptors(prototype));
    if (members.some(({ get }) => get !== undefined)) return false;
    prototype = next;
  }
  return true;
}

/** Returns the length of the prototype chain, at most 3. */
function prototypesOf(value: object): number {
  let count = 0;
  for (let next = Object.getPrototypeOf(value); next !== null && count < 3; count++) {
    next = Object.getPrototypeOf(next);
  }
  return count;
}

function isExactly<T>(value: object, type: (new (...args: never[]) => T) | undefined): value is object & T {
  return type !== undefined && Object.getPrototypeOf(value) === type.prototype;
}

function typeName(value: object): string {
  return (
    Object.getPrototypeOf(value)?.constructor?.name || Object.prototype.toString.call(value).slice(8, -1)
  );
}
