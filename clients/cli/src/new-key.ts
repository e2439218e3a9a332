import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { ApiKey_Role } from "@onceward/client/admin";
import { type Command, Option } from "commander";
import { several } from "./commands/group.ts";
import { enumName } from "./enum-name.ts";
import { parseFuture } from "./moments.ts";

/** The options of commands that make an API key. */
export interface NewKeyOptions {
  readonly role: "caller" | "admin";
  readonly label?: string;
  readonly namespace?: readonly string[];
  readonly expires?: Timestamp;
}

const ROLES = { caller: ApiKey_Role.CALLER, admin: ApiKey_Role.TENANT_ADMIN };

export function withNewKey(made: Command): Command {
  return withNewOperatorKey(
    made
      .addOption(
        new Option("--role <role>", "what the key may do").choices(Object.keys(ROLES)).makeOptionMandatory(),
      )
      .option("--namespace <name>", "good for this namespace only; may be given several times", several),
  );
}

/** The options of every key. */
export function withNewOperatorKey(made: Command): Command {
  return made
    .option("--label <text>", "what it is for")
    .option("--expires <time>", "when it stops working: a time, or a duration from now", parseFuture);
}

/** The key that the options describe. */
export function newKey({ role, label = "", namespace = [], expires }: NewKeyOptions) {
  return {
    role: ROLES[role],
    label,
    namespaces: [...namespace],
    ...(expires && { expiresAt: expires }),
  };
}

/** Such as "admin". */
export function roleName(role: ApiKey_Role): string {
  return enumName(ROLES, role);
}
