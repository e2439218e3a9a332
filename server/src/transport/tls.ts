import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext, type TlsOptions as NodeTlsOptions, type Server } from "node:tls";
import { createRepeating } from "../background/repeat.ts";
import type { Config } from "../config/config.ts";

/** The certificate of all ports, from files that are renewed from time to time. */
export type Tls = ReturnType<typeof openTls>;

/** The server's certificate with its chain, or the authorities of clients' certificates. */
type CertificateFile = "server" | "client_ca";

/** The path of each PEM file, or its contents. */
interface TlsFiles {
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
  const servers: Pick<Server, "setSecureContext">[] = [];
  let inUse = readFiles(files);

  const checking = createRepeating({
    intervalMs: checkIntervalMs,
    onFailed,
    async work() {
      const found = readFiles(files);
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

/** A chain is valid until its first certificate expires; so is each authority of a bundle separately. */
function earliestExpiry(pem: string): number {
  const each = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [pem];
  return Math.min(...each.map((text) => new X509Certificate(text).validToDate.getTime()));
}

function readVariable(variable: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw new Error(`${variable}: the file can't be read`, { cause });
  }
}

/** Returns the options of servers, and when the earliest certificate of each file expires, in milliseconds since 1970. */
function readFiles(files: TlsFiles) {
  const cert = readVariable("ONCEWARD_TLS_CERT", files.certificate);
  const key = readVariable("ONCEWARD_TLS_KEY", files.key);
  const ca = files.clientCa && readVariable("ONCEWARD_TLS_CLIENT_CA", files.clientCa);
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
  const options: NodeTlsOptions = { cert, key, minVersion: "TLSv1.2" };
  const expiries = new Map<CertificateFile, number>([["server", earliestExpiry(cert)]]);
  if (ca === undefined) return { options, expiries };
  try {
    new X509Certificate(ca);
  } catch (cause) {
    throw new Error("ONCEWARD_TLS_CLIENT_CA has no certificate, in PEM", { cause });
  }
  expiries.set("client_ca", earliestExpiry(ca));
  return { options: { ...options, ca, requestCert: true, rejectUnauthorized: true }, expiries };
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
