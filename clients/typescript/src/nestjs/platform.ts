import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { ExecutionContext } from "@nestjs/common";
import { attachedForm } from "../http/attached-form.ts";
import type { GuardedRequest } from "../http/guard.ts";
import { parsedBody, splitTarget } from "../http/node-request.ts";

/** The part of a request that Express and Fastify share. Annotate your functions with your platform's own type. */
export interface NestRequest {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly body?: unknown;
}

/** A request and its response, as the guard needs them, on either platform. */
export interface Exchange<Request extends object> {
  readonly guarded: GuardedRequest<Request>;
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  /** Returns the headers that earlier handlers have set, and the platform has not written yet. */
  readonly pendingHeaders: () => Readonly<Record<string, string>>;
}

/** A request of Express 4 and 5. */
interface ExpressRequest extends IncomingMessage {
  readonly originalUrl: string;
  readonly baseUrl: string;
  readonly route?: { readonly path?: unknown };
  readonly body?: unknown;
}

/** A request of Fastify 4 and 5. */
interface FastifyRequest {
  readonly raw: IncomingMessage;
  readonly method: string;
  readonly url: string;
  readonly routeOptions: { readonly url?: string };
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
}

interface FastifyReply {
  readonly raw: ServerResponse;
  getHeaders(): Record<string, number | string | string[] | undefined>;
  header(name: string, value: string): void;
}

/**
 * Returns a route's request and response.
 *
 * @throws TypeError if the handler does not belong to an HTTP route: without an Idempotency-Key header it would run
 *   unguarded.
 */
export function exchangeOf<Request extends object>(context: ExecutionContext): Exchange<Request> {
  if (context.getType() !== "http") {
    throw new TypeError(`@Idempotent guards routes of HTTP, not handlers of ${context.getType()}`);
  }
  const http = context.switchToHttp();
  const native = http.getRequest<Request>();
  if ("raw" in native) return fastifyExchange(native, http.getResponse<FastifyReply>());
  return expressExchange(native, http.getResponse<ServerResponse>());
}

function expressExchange<Request extends object>(
  native: Request,
  response: ServerResponse,
): Exchange<Request> {
  const request = native as unknown as ExpressRequest;
  const { path, query } = splitTarget(request.originalUrl);
  const pattern = request.route?.path;
  return {
    guarded: {
      native,
      method: request.method ?? "",
      route: typeof pattern === "string" ? request.baseUrl + pattern : path,
      path,
      query,
      header: (name) => request.headers[name]?.toString(),
      body: () => parsedBody(request, request.body),
      setHeader: (name, value) => void response.setHeader(name, value),
    },
    incoming: request,
    response,
    // Express sets them on the response.
    pendingHeaders: () => ({}),
  };
}

function fastifyExchange<Request extends object>(native: Request, reply: FastifyReply): Exchange<Request> {
  const request = native as unknown as FastifyRequest;
  const { path, query } = splitTarget(request.url);
  return {
    guarded: {
      native,
      method: request.method,
      route: request.routeOptions.url ?? path,
      path,
      query,
      header: (name) => request.headers[name]?.toString(),
      body: () => attachedForm(request) ?? parsedBody(request.raw, request.body),
      setHeader: (name, value) => reply.header(name, value),
    },
    incoming: request.raw,
    response: reply.raw,
    pendingHeaders: () => {
      const headers = Object.entries(reply.getHeaders());
      return Object.fromEntries(headers.map(([name, value]) => [name, String(value)]));
    },
  };
}
