import type { DescMethod, DescMethodUnary, DescService, Message } from "@bufbuild/protobuf";
import type { Answer, Call, Handlers } from "../calls/call.ts";
import type { Role } from "../domain/tenant.ts";

/** One RPC: what it takes, who may call it, and what answers it. */
export interface Route {
  readonly method: DescMethodUnary;
  /** `/package.Service/Method`. */
  readonly path: string;
  readonly role: Role;
  readonly handle: (request: Message, call: Call) => Answer<Message>;
}

/** The routes of a service whose RPCs are all for one role. A stream is no route: its messages are put to one. */
export function routesOf<Service extends DescService>(
  service: Service,
  role: Role,
  handlers: Handlers<Service>,
): readonly Route[] {
  return unaryMethods(service).map((method) => {
    // The handlers' type has one per method of the service, from its request to its response.
    const handle = handlers[method.localName as keyof Handlers<Service>] as unknown as Route["handle"];
    return { method, path: `/${service.typeName}/${method.name}`, role, handle };
  });
}

/** The RPCs of a service that take one message and answer with one. */
export function unaryMethods(service: DescService): readonly DescMethodUnary[] {
  const methods: readonly DescMethod[] = service.methods;
  return methods.filter(isUnary);
}

function isUnary(method: DescMethod): method is DescMethodUnary {
  return method.methodKind === "unary";
}
