import type { Deadline } from "../domain/operation.ts";
import type { Role } from "../domain/tenant.ts";

/** The credential that signed in. The actor of an API key is its id, that of a token its subject. */
export type SessionCredential =
  | {
      readonly kind: "API_KEY";
      readonly actor: string;
      /** As the database stores it of the key's secret: a key with another secret ends the session. */
      readonly keyDigest: Buffer;
    }
  | {
      readonly kind: "TOKEN";
      readonly actor: string;
      readonly issuer: string;
      readonly role: Role;
      /** The only namespaces that the token is valid for; undefined: all. */
      readonly namespaces: readonly string[] | undefined;
    };

/** A session as it was in the database at one moment. Instants are in `performance.now()` milliseconds. */
export interface KnownSession {
  /** Undefined: an operator's. */
  readonly tenantId: number | undefined;
  readonly credential: SessionCredential;
  /** Just before the database was asked. */
  readonly askedAtMs: number;
  /** When the session ends at the latest. */
  readonly endsAtMs: number;
  /** The same in milliseconds since the Unix epoch. */
  readonly expiresAtMs: number;
}

/** Finds the sessions of people who have signed in: the console stores them. */
export interface SessionFinder {
  /**
   * Returns the live session of a cookie's value, as it was at most MAX_AGE_MS ago.
   *
   * @throws Refusal CREDENTIAL_INVALID if there is none.
   */
  find(cookie: string, deadline: Deadline): Promise<KnownSession>;
  /** Drops all cached sessions, after the database was restored or replaced. */
  clear(): void;
}
