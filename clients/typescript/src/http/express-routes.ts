import type { ErrorRequestHandler, Request } from "express";

/** A route of Express, whose methods add a handler to its end. */
type Route = Readonly<Record<string, ((handler: ErrorRequestHandler) => unknown) | undefined>> & {
  /** The methods that it has handlers of. */
  readonly methods?: { readonly head?: boolean };
};

/** The methods of routes to which the handler was added: routes are the program's, and last longer than requests. */
const known = new WeakMap<object, Set<string>>();

/**
 * Adds an error handler to the end of the route that the request is in, and of each that it gets into later: it sees the errors of
 * the route's handlers before those that answer them, which are the application's.
 */
export function seeErrorsOfRoutes(request: Request, handler: ErrorRequestHandler): void {
  let { route } = request;
  seeErrorsOf(route, request.method, handler);
  // Express assigns the route when it has found it.
  Object.defineProperty(request, "route", {
    configurable: true,
    enumerable: true,
    get: () => route,
    set: (found) => {
      route = found;
      seeErrorsOf(found, request.method, handler);
    },
  });
}

function seeErrorsOf(route: Route | undefined, ofRequest: string, handler: ErrorRequestHandler): void {
  if (route === undefined || route === null) return;
  const method = methodOf(route, ofRequest.toLowerCase());
  const methods = known.get(route) ?? new Set();
  if (methods.has(method)) return;
  known.set(route, methods.add(method));
  // Not `all`: the route would then match every method.
  route[method]?.(handler);
}

/** A route answers HEAD by its handlers of GET, unless it has one of HEAD. */
function methodOf({ methods = {} }: Route, method: string): string {
  return method === "head" && methods.head !== true ? "get" : method;
}
