import { Buffer } from "node:buffer";
import type { GuardedRequest, Handled } from "./guard.ts";
import type { WholeResponse } from "./whole-response.ts";

/** The values of headers or of a query by their names, as AWS writes them. */
type Values = Readonly<Record<string, string | undefined>>;
type MultiValues = Readonly<Record<string, readonly string[] | undefined>>;

interface AnyEvent {
  readonly headers?: Values | null | undefined;
  readonly body?: string | null | undefined;
  readonly isBase64Encoded?: boolean | undefined;
}

/** An event of API Gateway's REST APIs (payload 1.0) or of an Application Load Balancer, as `@types/aws-lambda` has it. */
export interface HttpEventV1 extends AnyEvent {
  readonly httpMethod: string;
  readonly path: string;
  /** API Gateway's pattern of the route, such as `/charges/{id}`. A load balancer has none. */
  readonly resource?: string | undefined;
  readonly multiValueHeaders?: MultiValues | null | undefined;
  readonly queryStringParameters?: Values | null | undefined;
  readonly multiValueQueryStringParameters?: MultiValues | null | undefined;
}

/** An event of API Gateway's HTTP APIs (payload 2.0) or of a function URL. */
export interface HttpEventV2 extends AnyEvent {
  readonly version: string;
  /** Such as `POST /charges/{id}`, or `$default`. */
  readonly routeKey: string;
  readonly rawPath: string;
  readonly rawQueryString: string;
  readonly requestContext: { readonly http: { readonly method: string } };
}

/** An HTTP request as a Lambda function gets it. */
export type HttpEvent = HttpEventV1 | HttpEventV2;

/** The response of a Lambda function to an HTTP request. */
export interface HttpResult {
  readonly statusCode: number;
  readonly headers?: Readonly<Record<string, string | number | boolean>> | undefined;
  readonly multiValueHeaders?: Readonly<Record<string, readonly (string | number | boolean)[]>> | undefined;
  readonly body?: string | undefined;
  readonly isBase64Encoded?: boolean | undefined;
  /** Cookies, of payload 2.0 alone: not replayed. */
  readonly cookies?: readonly string[] | undefined;
}

/** Returns the request of an event. `ours` collects the headers that the guard sets. @throws TypeError for another event. */
export function requestOf<Event extends HttpEvent>(
  event: Event,
  ours: Record<string, string>,
  signal: AbortSignal,
): GuardedRequest<Event> {
  const headers = headersOf(event);
  return {
    native: event,
    ...("rawPath" in event ? targetV2(event) : targetV1(event)),
    header: (name) => headers.get(name),
    body: () => Buffer.from(event.body ?? "", event.isBase64Encoded === true ? "base64" : "utf8"),
    setHeader: (name, value) => {
      ours[name] = value;
    },
    signal,
  };
}

function targetV2({ rawPath, rawQueryString, routeKey, requestContext }: HttpEventV2) {
  const pattern = routeKey.split(" ")[1];
  const query = rawQueryString === "" ? "" : `?${rawQueryString}`;
  return { method: requestContext.http.method, route: routeOf(pattern, rawPath), path: rawPath, query };
}

function targetV1(event: HttpEventV1) {
  const { httpMethod: method, path, resource } = event;
  if (typeof method !== "string" || typeof path !== "string")
    throw new TypeError("the event is not an HTTP request of API Gateway, a load balancer or a function URL");
  const single = Object.entries(event.queryStringParameters ?? {}).map(
    ([name, value]) => [name, [value]] as const,
  );
  const values = new Map<string, readonly (string | undefined)[] | undefined>([
    ...single,
    ...Object.entries(event.multiValueQueryStringParameters ?? {}),
  ]);
  const pairs = [...values].flatMap(([name, all]) =>
    (all ?? []).map((value) => [name, value ?? ""] as const),
  );
  // The object has no order.
  const query = new URLSearchParams(
    pairs.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([a, b]) => [a, b]),
  ).toString();
  return { method, route: routeOf(resource, path), path, query: query === "" ? "" : `?${query}` };
}

/** A pattern that matches any path names no operation. */
function routeOf(pattern: string | undefined, path: string): string {
  return pattern === undefined || pattern.includes("+}") ? path : pattern;
}

function headersOf(event: HttpEvent): ReadonlyMap<string, string> {
  const multi = "multiValueHeaders" in event ? (event.multiValueHeaders ?? {}) : {};
  return new Map(
    [
      ...Object.entries(event.headers ?? {}),
      ...Object.entries(multi).map(([name, all]) => [name, all?.join(", ")] as const),
    ].flatMap(([name, value]) => (value === undefined ? [] : [[name.toLowerCase(), value] as const])),
  );
}

/** Returns a function's result with its status, headers and body. @throws TypeError for a result that is not a response. */
export function handledOf(result: HttpResult): Handled<HttpResult> {
  if (typeof result !== "object" || result === null || typeof result.statusCode !== "number")
    throw new TypeError("the function must return an object with a statusCode");
  const { statusCode, headers = {}, multiValueHeaders = {}, body = "", isBase64Encoded } = result;
  const picked: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) picked[name.toLowerCase()] = `${value}`;
  for (const [name, all] of Object.entries(multiValueHeaders)) picked[name.toLowerCase()] = all.join(", ");
  const bytes = Buffer.from(body, isBase64Encoded === true ? "base64" : "utf8");
  return { status: statusCode, headers: picked, body: bytes, sent: result };
}

/** Returns a replay or a refusal as the event's source expects it. A body that is UTF-8 is sent as text. */
export function resultOf(
  event: HttpEvent,
  { status, headers, body = new Uint8Array() }: WholeResponse,
): HttpResult {
  const text = textOf(body);
  return withHeaders(event, headers, {
    statusCode: status,
    body: text ?? Buffer.from(body).toString("base64"),
    isBase64Encoded: text === undefined,
  });
}

/** Adds headers to a result. A load balancer that sends lists of values expects lists, and ignores `headers`. */
export function withHeaders(
  event: HttpEvent,
  added: Readonly<Record<string, string>>,
  result: HttpResult,
): HttpResult {
  if (Object.keys(added).length === 0) return result;
  const isMulti = "multiValueHeaders" in event && event.multiValueHeaders != null && event.headers == null;
  if (!isMulti) return { ...result, headers: { ...result.headers, ...added } };
  const lists = Object.entries(added).map(([name, value]) => [name, [value]] as const);
  return { ...result, multiValueHeaders: { ...result.multiValueHeaders, ...Object.fromEntries(lists) } };
}

function textOf(body: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    return undefined;
  }
}
