import {
  type DescMethod,
  type DescMethodUnary,
  type DescService,
  getOption,
  type Message,
} from "@bufbuild/protobuf";
import type { Answer, Call, Handlers } from "../access/call.ts";
import type { Role } from "../domain/tenant.ts";
import { Role as ServiceRole, role as serviceRole } from "../gen/onceward/v1/facts_pb.ts";

/** One unary RPC: its method, the role that may call it, and its handler. */
export interface Route {
  readonly method: DescMethodUnary;
  /** `/package.Service/Method`. */
  readonly path: string;
  /** Undefined: any role. */
  readonly role: Role | undefined;
  readonly handle: (request: Message, call: Call) => Answer<Message>;
}

/** Returns the routes of those RPCs of a service that have a handler, for the service's role. A streaming RPC has no route. */
export function routesOf<Service extends DescService>(
  service: Service,
  handlers: Partial<Handlers<Service>>,
): readonly Route[] {
  const role = roleOf(service);
  return unaryMethods(service).flatMap((method) => {
    // The type of the handlers has one for each method of the service, from its request to its response.
    const handle = handlers[method.localName as keyof Handlers<Service>] as unknown as
      | Route["handle"]
      | undefined;
    return handle === undefined ? [] : [{ method, path: pathOf(method), role, handle }];
  });
}

/** @throws Error for a service without a role: every credential could call it. */
function roleOf(service: DescService): Role | undefined {
  const role = getOption(service, serviceRole);
  switch (role) {
    case ServiceRole.CALLER:
      return "CALLER";
    case ServiceRole.TENANT_ADMIN:
      return "TENANT_ADMIN";
    case ServiceRole.OPERATOR:
      return "OPERATOR";
    case ServiceRole.ANY:
      return undefined;
    default:
      throw new Error(`${service.typeName} has no role`);
  }
}

/** Returns the path of an RPC in requests: `/package.Service/Method`. */
export function pathOf({ parent, name }: DescMethod): string {
  return `/${parent.typeName}/${name}`;
}

/** Returns the unary RPCs of a service. */
export function unaryMethods(service: DescService): readonly DescMethodUnary[] {
  return service.methods.filter((method): method is DescMethodUnary => method.methodKind === "unary");
}
