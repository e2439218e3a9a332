import type { DescMethod, DescMethodUnary, DescService, Message } from "@bufbuild/protobuf";
import type { Answer, Call, Handlers } from "../calls/call.ts";
import type { Role } from "../domain/tenant.ts";

/** One unary RPC: its method, the role that may call it, and its handler. */
export interface Route {
  readonly method: DescMethodUnary;
  /** `/package.Service/Method`. */
  readonly path: string;
  /** Undefined: any role. */
  readonly role: Role | undefined;
  readonly handle: (request: Message, call: Call) => Answer<Message>;
}

/**
 * Returns the routes of those RPCs of a service that have a handler. They are all for one role, or for any (undefined). A
 * streaming RPC has no route.
 */
export function routesOf<Service extends DescService>(
  service: Service,
  role: Role | undefined,
  handlers: Partial<Handlers<Service>>,
): readonly Route[] {
  return unaryMethods(service).flatMap((method) => {
    // The type of the handlers has one for each method of the service, from its request to its response.
    const handle = handlers[method.localName as keyof Handlers<Service>] as unknown as
      | Route["handle"]
      | undefined;
    return handle === undefined ? [] : [{ method, path: pathOf(method), role, handle }];
  });
}

/** Returns the path of an RPC in requests: `/package.Service/Method`. */
export function pathOf({ parent, name }: DescMethod): string {
  return `/${parent.typeName}/${name}`;
}

/** Returns the unary RPCs of a service. */
export function unaryMethods(service: DescService): readonly DescMethodUnary[] {
  return service.methods.filter((method): method is DescMethodUnary => method.methodKind === "unary");
}
