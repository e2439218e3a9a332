import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext, type TlsOptions as NodeTlsOptions, type Server } from "node:tls";
import { createRepeating } from "../background/repeat.ts";
import type { Config } from "../config/config.ts";

/** The certificate of all ports, from files that are renewed from time to time. */
export type Tls = ReturnType<typeof openTls>;

/** The server's certificate with its chain, or the authorities of clients' certificates. */
export type CertificateFile = "server" | "client_ca";

/** The path of each PEM file, or its contents. */
export interface TlsFiles {
  /** The server's certificate and its intermediate ones. */
  readonly certificate: string;
  readonly key: string;
  /** The authorities of clients' certificates; undefined if clients need none. */
  readonly clientCa: string | undefined;
}

export interface TlsOptions {
  readonly files: TlsFiles;
  readonly onRenewed: () => void;
  /**
   * Called with the reason why renewed files can't be used; the previous ones stay in use until the next
   * check.
   */
  readonly onFailed: (error: unknown) => void;
  readonly checkIntervalMs?: number | undefined;
}

/**
 * The files are read again, not watched: a watch would miss a certificate manager that replaces the
 * directory. Certificates are renewed days before they expire.
 */
const CHECK_INTERVAL_MS = 60_000;

/**
 * Reads the files.
 *
 * @throws Error naming the variable of a file that can't be read or used.
 */
export function openTls({ files, onRenewed, onFailed, checkIntervalMs = CHECK_INTERVAL_MS }: TlsOptions) {
  const read = () => inUseOf(readFiles(files));
  const servers: Pick<Server, "setSecureContext">[] = [];
  let inUse = read();

  const checking = createRepeating({
    intervalMs: checkIntervalMs,
    onFailed,
    async work() {
      const found = read();
      const [ours, theirs] = [inUse.options, found.options];
      if (theirs.cert === ours.cert && theirs.key === ours.key && theirs.ca === ours.ca) return;
      inUse = found;
      for (const server of servers) server.setSecureContext(found.options);
      onRenewed();
    },
  });

  return {
    /** The options for a new server. */
    get options(): NodeTlsOptions {
      return inUse.options;
    },
    /** Returns the seconds until the earliest certificate of each file in use expires; negative if it has. */
    expiresInS: () =>
      new Map([...inUse.expiries].map(([file, atMs]) => [file, (atMs - Date.now()) / 1000] as const)),
    /** Whether clients must present a certificate. */
    asksClients: files.clientCa !== undefined,
    /** Gives the server each renewed certificate, for new connections; returns the server. */
    follow<Following extends Pick<Server, "setSecureContext">>(server: Following): Following {
      servers.push(server);
      return server;
    },
    /** Starts checking the files for renewals. */
    start: checking.start,
    /** Stops checking the files. */
    stop: checking.stop,
  };
}

interface InUse {
  readonly options: NodeTlsOptions;
  /** When the earliest certificate of each file expires, in milliseconds since 1970. */
  readonly expiries: ReadonlyMap<CertificateFile, number>;
}

function inUseOf(files: TlsFiles): InUse {
  const options = optionsOf(files);
  const expiries = new Map([["server", earliestExpiry(files.certificate)]] as [CertificateFile, number][]);
  if (files.clientCa !== undefined) expiries.set("client_ca", earliestExpiry(files.clientCa));
  return { options, expiries };
}

/** A chain is valid until its first certificate expires; so is each authority of a bundle by itself. */
function earliestExpiry(pem: string): number {
  const each = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [pem];
  return Math.min(...each.map((text) => new X509Certificate(text).validToDate.getTime()));
}

function readFiles({ certificate, key, clientCa }: TlsFiles): TlsFiles {
  return {
    certificate: readVariable("ONCEWARD_TLS_CERT", certificate),
    key: readVariable("ONCEWARD_TLS_KEY", key),
    clientCa: clientCa && readVariable("ONCEWARD_TLS_CLIENT_CA", clientCa),
  };
}

function readVariable(variable: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw new Error(`${variable}: the file can't be read`, { cause });
  }
}

function optionsOf({ certificate: cert, key, clientCa }: TlsFiles): NodeTlsOptions {
  try {
    // OpenSSL would treat an empty file as none, here and below.
    new X509Certificate(cert);
    createPrivateKey(key);
    createSecureContext({ cert, key });
  } catch (cause) {
    throw new Error("ONCEWARD_TLS_CERT and ONCEWARD_TLS_KEY are not a certificate and its key, in PEM", {
      cause,
    });
  }
  const ours = { cert, key, minVersion: "TLSv1.2" } as const;
  if (clientCa === undefined) return ours;
  try {
    new X509Certificate(clientCa);
  } catch (cause) {
    throw new Error("ONCEWARD_TLS_CLIENT_CA has no certificate, in PEM", { cause });
  }
  return { ...ours, ca: clientCa, requestCert: true, rejectUnauthorized: true };
}

/**
 * Returns TLS as configured; undefined if it is not configured.
 *
 * @throws Error as `openTls`.
 */
export function configuredTls(config: Config, options: Omit<TlsOptions, "files">): Tls | undefined {
  const { ONCEWARD_TLS_CERT: certificate, ONCEWARD_TLS_KEY: key, ONCEWARD_TLS_CLIENT_CA: clientCa } = config;
  // `readConfig` accepts both or none.
  if (certificate === undefined || key === undefined) return undefined;
  return openTls({ ...options, files: { certificate, key, clientCa } });
}
