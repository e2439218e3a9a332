import { randomUUID } from "node:crypto";
import { z } from "zod";

/** Names of HTTP headers, in any case. */
const headers = z.record(
  z.string().regex(/^[\w!#$%&'*+.^`|~-]{1,128}$/, "must be a header's name"),
  z.string().max(4096),
);
const path = z.string().max(2048).regex(/^\//, "must begin with a slash");
const command = z.array(z.string().max(4096)).min(1).max(64);
const method = z.enum(["POST", "PUT", "PATCH", "DELETE"]);

/** An endpoint and what the user says about it. Every member is also an option of `onceward probe`, which describes it. */
export const endpointSchema = z.strictObject({
  url: z.url({ protocol: /^https?$/, error: "must be an http or https URL" }),
  method: method.default("POST"),
  headers: headers.default({}),
  body: z.string().max(65_536).default("{}"),
  keyHeader: z.string().min(1).max(128).default("Idempotency-Key"),
  keyRequired: z.boolean().default(false),
  otherBody: z.string().max(65_536).optional(),
  otherPath: path.optional(),
  otherMethod: method.optional(),
  otherHeaders: headers.optional(),
  invalidBody: z.string().max(65_536).optional(),
  failHeaders: headers.optional(),
  replayHeader: z.string().min(1).max(128).optional(),
  countUrl: z.url().optional(),
  countCommand: command.optional(),
  countSql: z.string().min(1).max(4096).optional(),
  restartCommand: command.optional(),
  lateMs: z.int().min(0).max(600_000).default(2000),
  unclaimed: z.array(z.string().max(64)).max(100).default([]),
});

/** An endpoint of a configuration, with defaults. */
export type Endpoint = z.output<typeof endpointSchema>;

/** A configuration: endpoints that are probed one after another. */
export const configSchema = z.strictObject({ endpoints: z.array(endpointSchema).min(1).max(100) });

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
  const key = "key" in changes ? changes.key : randomUUID();
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
