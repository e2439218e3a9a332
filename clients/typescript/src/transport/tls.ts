import { readFileSync } from "node:fs";
import { createSecureContext, type SecureContext, type SecureContextOptions } from "node:tls";
import { refusedField } from "../errors/violations.ts";
import type { Pem, TlsOptions } from "./tls-options.ts";

/** What `http2.connect` needs for a TLS connection; evaluated for each connection. */
export interface TlsSettings {
  readonly secureContext: SecureContext;
  readonly servername?: string;
}

/**
 * Returns the settings of the next connection each time they are read: files are read again, so that a renewed
 * certificate is used without a restart. While files can't be used, such as between the writing of a certificate and of
 * its key, the last ones that could are used.
 */
export function tlsSettings({ ca, cert, key, serverName }: TlsOptions): TlsSettings {
  let last: SecureContext | undefined;
  return {
    ...(serverName !== undefined && { servername: serverName }),
    /** @throws InvalidRequestError if the files or bytes can't be used, and never could. */
    get secureContext() {
      try {
        last = createSecureContext(contentsOf({ ca, cert, key }));
        return last;
      } catch (cause) {
        if (last !== undefined) return last;
        throw refusedField("tls", `can't be used: ${cause instanceof Error ? cause.message : cause}`, cause);
      }
    },
  };
}

function contentsOf(pems: Readonly<Record<"ca" | "cert" | "key", Pem | undefined>>): SecureContextOptions {
  const read = Object.entries(pems).flatMap(([name, pem]) =>
    pem === undefined ? [] : [[name, typeof pem === "string" ? readFileSync(pem) : Buffer.from(pem)]],
  );
  return Object.fromEntries(read);
}
