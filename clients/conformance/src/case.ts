import { readdirSync, readFileSync } from "node:fs";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { reasonCases } from "./reason-cases.ts";

/** A part of the contract of every client, such as "fingerprints", with its cases. The README explains the format. */
export interface Family {
  readonly family: string;
  /** The rule that the cases show. */
  readonly about: string;
  readonly cases: readonly Case[];
}

/** One case: an action of the client, and what must be seen. */
export interface Case {
  /** States a fact that holds if the case passes. Unique among all cases. */
  readonly name: string;
  /** The action, which the client's adapter performs; the other members are its arguments. */
  readonly do: string;
  /** Why a language does not have the action, by the language: its client does not perform the case. */
  readonly lacks?: Readonly<Record<string, string>>;
  /** The answers of the service, for an action that calls it. */
  readonly service?: readonly ScriptedAnswer[];
  readonly expect: Expectation;
  readonly [argument: string]: unknown;
}

/** What must be seen. Of an object, only the members that are named here. */
export interface Expectation {
  /** What the adapter reports. */
  readonly outcome: JsonValue;
  /** The calls that reach the service: these, in this order, and no others. Left out where their number may differ. */
  readonly calls?: readonly ExpectedCall[];
}

/** A call that the service must see: the operation, and members of its request as proto3 JSON. */
export interface ExpectedCall {
  readonly on: Operation;
  readonly request?: JsonObject;
  /** How often it comes in turn: once, or at least once. Default: once. */
  readonly times?: "some";
  /** How long after the call before it this one arrives, at the least. */
  readonly afterMs?: number;
}

/** A call that a script can answer. */
export type Operation = "claim" | "complete" | "release" | "extendLease" | "lookup";

/** The answer to the next call of an operation. */
export type ScriptedAnswer = {
  readonly on: Operation;
  /** The answer is held back for so long. */
  readonly delayMs?: number;
  /** For how many calls the answer serves: 1, or all further ones. Default: 1. */
  readonly times?: "any";
} & Answer;

/** What the service does with a call. */
export type Answer =
  /** The response, as proto3 JSON. */
  | { readonly answer: JsonObject }
  /** A refusal of the service's catalogue. */
  | { readonly error: ScriptedError }
  /** The response as these bytes, in hexadecimal, which need not be a message. The first byte is below 80. */
  | { readonly bytes: string }
  /** A gRPC status without details, such as a proxy gives; or with these damaged ones, as the trailer's text. */
  | { readonly status: number; readonly details?: JsonValue }
  /** The connection breaks before the answer. */
  | { readonly lose: true }
  /** There is no answer: all open connections stay open, and forward nothing from now on. New ones work. */
  | { readonly silent: true };

/** A refusal, with the details that `errors.proto` lists for its reason. */
export interface ScriptedError {
  /** A `google.rpc.Code`. */
  readonly code: number;
  readonly reason: string;
  readonly message?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly violations?: readonly { readonly field: string; readonly description: string }[];
  readonly retryDelayMs?: number;
  readonly requestId?: string;
}

const CASES = new URL("../cases/", import.meta.url);

/**
 * Returns all families, in the order of their names. The family "errors" has a case for each reason: its own, or the usual one.
 *
 * @throws Error if two cases have one name.
 */
export function loadFamilies(): readonly Family[] {
  const files = readdirSync(CASES).filter((file) => file.endsWith(".json"));
  const families = files
    .sort()
    .map((file) => JSON.parse(readFileSync(new URL(file, CASES), "utf8")) as Family)
    .map((family) => (family.family === "errors" ? withReasons(family) : family));
  const names = new Set<string>();
  for (const { name } of families.flatMap(({ cases }) => cases)) {
    if (names.has(name)) throw new Error(`Two cases are named ${JSON.stringify(name)}.`);
    names.add(name);
  }
  return families;
}

function withReasons(family: Family): Family {
  const own = new Set(family.cases.map(({ name }) => name));
  return { ...family, cases: [...family.cases, ...reasonCases().filter(({ name }) => !own.has(name))] };
}
