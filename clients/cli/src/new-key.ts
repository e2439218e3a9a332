import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { ApiKey_Role } from "@onceward/client/proto";
import type { Command } from "commander";
import { choiceOption } from "./choices.ts";
import { several } from "./commands/group.ts";
import { enumName } from "./output.ts";
import { parseFuture } from "./times.ts";

/** The options of commands that create an API key. */
export interface NewKeyOptions {
  readonly role: ApiKey_Role;
  readonly label?: string;
  readonly namespace?: readonly string[];
  readonly expires?: Timestamp;
  readonly out?: string;
}

const ROLES = { caller: ApiKey_Role.CALLER, admin: ApiKey_Role.TENANT_ADMIN };
/** The contract's name. */
const ROLE_ALIASES = { tenant_admin: ApiKey_Role.TENANT_ADMIN };

export function withNewKey(made: Command): Command {
  return withNewOperatorKey(
    made
      .addOption(
        choiceOption("--role <role>", "what the key may do", ROLES, ROLE_ALIASES).makeOptionMandatory(),
      )
      .option(
        "--namespace <name>",
        "restrict the key to this namespace; may be given several times",
        several,
      ),
  );
}

/** Adds the options that all keys have. */
export function withNewOperatorKey(made: Command): Command {
  return made
    .option("--label <text>", "what the key is for")
    .option("--expires <time>", "when it stops working: a time, or a duration from now", parseFuture)
    .option(
      "--out <file>",
      "write the secret to this new file, readable by you only, instead of printing it",
    );
}

/** Returns the API key that the options describe. */
export function newKey({ role, label = "", namespace = [], expires }: NewKeyOptions) {
  return {
    role,
    label,
    namespaces: [...namespace],
    ...(expires && { expiresAt: expires }),
  };
}

/** Returns a role's name, such as "admin". */
export function roleName(role: ApiKey_Role): string {
  return enumName({ ...ROLES, operator: ApiKey_Role.OPERATOR }, role);
}
