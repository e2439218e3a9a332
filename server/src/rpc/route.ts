import type { DescMethod, DescMethodUnary, DescService, Message } from "@bufbuild/protobuf";
import type { Role } from "../domain/tenant.ts";
import type { Answer, Call, Handlers } from "../services/call.ts";

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
  return service.methods.filter(isUnary).map((method) => {
    // The handlers' type has one per method of the service, from its request to its response.
    const handle = handlers[method.localName as keyof Handlers<Service>] as unknown as Route["handle"];
    return { method, path: `/${service.typeName}/${method.name}`, role, handle };
  });
}

function isUnary(method: DescMethod): method is DescMethodUnary {
  return method.methodKind === "unary";
}
