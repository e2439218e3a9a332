import { accessSync, constants } from "node:fs";
import { refusedField } from "../errors/violations.ts";

/** The path of a PEM file, or the bytes of one. */
export type Pem = string | Uint8Array;

/** The certificates of connections to `https://` addresses. */
export interface TlsOptions {
  /**
   * The certificates of the authorities that may have signed the service's certificate. Default: those that Node trusts.
   */
  readonly ca?: Pem | undefined;
  /** The client's certificate, for a service that asks for one, with `key`. Default: none. */
  readonly cert?: Pem | undefined;
  /** The private key of `cert`, without a passphrase. Default: none. */
  readonly key?: Pem | undefined;
  /** The name that the service's certificate must have, if it is not the address's host. Default: the host. */
  readonly serverName?: string | undefined;
}

/**
 * Checks TLS options before anything is sent. Whether the contents fit together, the first connection finds out.
 *
 * @throws InvalidRequestError.
 */
export function checkTls({ ca, cert, key, serverName }: TlsOptions, origins: readonly string[]): void {
  const plain = origins.find((origin) => !origin.startsWith("https:"));
  if (plain !== undefined) throw refusedField("tls", `needs addresses with https://, not ${plain}`);
  for (const [name, pem] of Object.entries({ ca, cert, key })) checkPem(`tls.${name}`, pem);
  if ((cert === undefined) !== (key === undefined))
    throw refusedField("tls", "must have both cert and key, or neither");
  if (serverName !== undefined && (typeof serverName !== "string" || serverName === ""))
    throw refusedField("tls.serverName", "must be a host name");
}

function checkPem(field: string, pem: Pem | undefined): void {
  if (pem === undefined || pem instanceof Uint8Array) return;
  // The message shows no text that is not a path: it may be a private key.
  if (typeof pem !== "string") throw refusedField(field, "must be the path of a PEM file, or its bytes");
  if (pem.includes("-----BEGIN"))
    throw refusedField(field, "must be the path of a PEM file, or its bytes: Buffer.from(pem)");
  try {
    accessSync(pem, constants.R_OK);
  } catch (cause) {
    throw refusedField(field, `can't be read: ${(cause as Error).message}`, cause);
  }
}
