import { timestampDate } from "@bufbuild/protobuf/wkt";
import { type WhoAmIResponse, WhoAmIResponse_Kind } from "@onceward/gen/onceward/v1/identity_pb.ts";
import { ApiKey_Role } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { createContext, useContext } from "react";
import { ofStorage } from "./store.ts";

/** The role of a session, as the contract names it. */
export type Role = Exclude<keyof typeof ApiKey_Role, "UNSPECIFIED">;

/** Who is signed in. */
export interface Session {
  readonly role: Role;
  /** The id of the API key, or the subject of the token. */
  readonly actor: string;
  readonly kind: "key" | "token";
  /** Empty for an operator. */
  readonly tenant: string;
  /** The only namespaces that the session sees; empty: all. */
  readonly namespaces: readonly string[];
  /** When the key or token expires; undefined: never. */
  readonly expiresAt: Date | undefined;
}

/** Returns the session that an answer describes; undefined for an anonymous caller, who has none. */
export function sessionOf(answer: WhoAmIResponse): Session | undefined {
  if (answer.kind === WhoAmIResponse_Kind.ANONYMOUS) return undefined;
  return {
    role: roleOf(answer.role) ?? "CALLER",
    actor: answer.actor,
    kind: answer.kind === WhoAmIResponse_Kind.TOKEN ? "token" : "key",
    tenant: answer.tenant,
    namespaces: answer.namespaces,
    expiresAt: answer.expiresAt === undefined ? undefined : timestampDate(answer.expiresAt),
  };
}

const SIGNED_IN = "onceward.console.signed-in";

/** Returns whether someone was signed in when this browser last knew: then a screen's file may be asked for at once. */
export function wasSignedIn(): boolean {
  return ofStorage(() => localStorage.getItem(SIGNED_IN) !== null, false);
}

/** Notes whether someone is signed in. */
export function noteSignedIn(isSignedIn: boolean): void {
  const note = () => (isSignedIn ? localStorage.setItem(SIGNED_IN, "") : localStorage.removeItem(SIGNED_IN));
  ofStorage(note, undefined);
}

/** Roles in words. */
export const ROLE_WORDS: Readonly<Record<Role, string>> = {
  CALLER: "Caller",
  TENANT_ADMIN: "Tenant admin",
  OPERATOR: "Operator",
};

/** Returns a role by its name; undefined for one of a later version. */
function roleOf(role: ApiKey_Role): Role | undefined {
  return (Object.keys(ROLE_WORDS) as Role[]).find((name) => ApiKey_Role[name] === role);
}

/** Returns the role of a key in words. */
export function roleWords(role: ApiKey_Role): string {
  const name = roleOf(role);
  return name === undefined ? "Unknown" : ROLE_WORDS[name];
}

/** Holds the session below SessionGate. */
export const SessionContext = createContext<Session | undefined>(undefined);

/** Returns who is signed in. Only below SessionGate. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === undefined) throw new Error("useSession is used outside of SessionGate");
  return session;
}
