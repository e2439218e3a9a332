import { randomUUID } from "node:crypto";
import { newKey } from "@onceward/client";
import { UsageError } from "../failure.ts";
import {
  flag,
  headers,
  members,
  milliseconds,
  oneOf,
  type Read,
  text,
  texts,
  url,
} from "./endpoint-fields.ts";

const METHODS = ["POST", "PUT", "PATCH", "DELETE"] as const;

/**
 * An endpoint, or the tools of a server of Model Context Protocol, and what the user says about it. Every member is also an option
 * of `onceward probe`, which describes it.
 */
export interface Endpoint {
  /** In reports, also the name of a server and its tool. */
  readonly url: string;
  /** The URL of a server, or the command that starts it. */
  readonly mcp?: string;
  readonly tools: readonly string[];
  readonly allowWrites: boolean;
  /** A JSON Pointer. */
  readonly keyArgument?: string;
  readonly method: (typeof METHODS)[number];
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly keyHeader: string;
  readonly keyRequired: boolean;
  readonly otherBody?: string;
  readonly otherPath?: string;
  readonly otherMethod?: (typeof METHODS)[number];
  readonly otherHeaders?: Readonly<Record<string, string>>;
  readonly invalidBody?: string;
  readonly failHeaders?: Readonly<Record<string, string>>;
  readonly replayHeader?: string;
  readonly countUrl?: string;
  /** A program and its arguments. */
  readonly countCommand?: readonly string[];
  readonly countSql?: string;
  readonly restartCommand?: readonly string[];
  readonly lateMs: number;
  readonly unclaimed: readonly string[];
}

const DEFAULTS = {
  ...{ method: "POST", headers: {}, body: "{}", keyHeader: "Idempotency-Key", keyRequired: false },
  ...{ tools: [], allowWrites: false, lateMs: 2000, unclaimed: [] },
} as const;

const READERS: { readonly [Name in keyof Required<Endpoint>]: Read<Required<Endpoint>[Name]> } = {
  url,
  mcp: text(4096),
  tools: texts(0, 128),
  allowWrites: flag,
  keyArgument: text(1024, /^\//, "a JSON Pointer, such as /idempotency_key"),
  method: oneOf(...METHODS),
  headers,
  body: text(),
  keyHeader: text(128),
  keyRequired: flag,
  otherBody: text(),
  otherPath: text(2048, /^\//, "a path that begins with a slash"),
  otherMethod: oneOf(...METHODS),
  otherHeaders: headers,
  invalidBody: text(),
  failHeaders: headers,
  replayHeader: text(128),
  countUrl: url,
  countCommand: texts(1, 4096),
  countSql: text(4096),
  restartCommand: texts(1, 4096),
  lateMs: milliseconds(600_000),
  unclaimed: texts(0, 64),
};

/** Reads an endpoint of a configuration. @throws UsageError with the field that is wrong. */
export function readEndpoint(value: unknown): Endpoint {
  const given = members(value);
  const read = Object.entries(given).map(([name, member]) => {
    const reader = Object.hasOwn(READERS, name) ? READERS[name as keyof Endpoint] : undefined;
    if (reader === undefined) throw new UsageError(`${name}: is not a member of an endpoint`);
    try {
      return [name, reader(member)];
    } catch (error) {
      throw new UsageError(`${name}: ${error instanceof Error ? error.message : error}`);
    }
  });
  if ((given.url === undefined) === (given.mcp === undefined))
    throw new UsageError("url: this or mcp is needed");
  const endpoint: Endpoint = { ...DEFAULTS, url: String(given.mcp), ...Object.fromEntries(read) };
  if (endpoint.tools.length > 0 !== endpoint.allowWrites)
    throw new UsageError("tools: the tools to call, and allowWrites, need each other");
  return endpoint;
}

/** A request to an endpoint. */
export interface ProbeRequest {
  readonly url: string;
  readonly method: string;
  /** Values may name environment variables, such as `Bearer ${TOKEN}`. A name with several values is sent several times. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: string;
  /** `chunked` sends the body in two chunks without Content-Length; `gzip` compresses it. */
  readonly encoding?: "chunked" | "gzip";
}

/** What differs from the endpoint's own request. */
export interface Changes {
  /** Undefined: no key. */
  readonly key?: string | readonly string[] | undefined;
  readonly body?: string;
  readonly path?: string;
  readonly method?: string;
  /** Instead of the endpoint's headers. */
  readonly as?: Readonly<Record<string, string>>;
  /** Besides the endpoint's headers. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly encoding?: "chunked" | "gzip";
}

/** Returns a request of a new operation: with a key and an `{{id}}` of its own, unless the changes have others. */
export function requestOf(endpoint: Endpoint, changes: Changes = {}): ProbeRequest {
  const url = new URL(endpoint.url);
  if (changes.path !== undefined) url.pathname = changes.path;
  const key = "key" in changes ? changes.key : newKey();
  const body = (changes.body ?? endpoint.body).replaceAll("{{id}}", () => randomUUID());
  return {
    url: url.href,
    method: changes.method ?? endpoint.method,
    headers: {
      ...(changes.as ?? endpoint.headers),
      ...changes.headers,
      ...(key !== undefined && { [endpoint.keyHeader]: key }),
    },
    body,
    ...(changes.encoding !== undefined && { encoding: changes.encoding }),
  };
}

/** Returns a request with a header that replaces one of the same name, in any case; undefined removes it. */
export function withHeader(
  request: ProbeRequest,
  name: string,
  value: string | readonly string[] | undefined,
): ProbeRequest {
  const others = Object.entries(request.headers).filter(([one]) => one.toLowerCase() !== name.toLowerCase());
  return {
    ...request,
    headers: { ...Object.fromEntries(others), ...(value !== undefined && { [name]: value }) },
  };
}
