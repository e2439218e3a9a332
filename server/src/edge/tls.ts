import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext, type TlsOptions as NodeTlsOptions, type Server } from "node:tls";
import { createRepeating } from "../background/repeat.ts";

/** The certificate of all ports, from files that are renewed from time to time. */
export interface Tls {
  /** The options for a new server. */
  readonly options: NodeTlsOptions;
  /** Whether clients must present a certificate. */
  readonly asksClients: boolean;
  /** Gives the server each renewed certificate, for new connections. */
  follow(server: Pick<Server, "setSecureContext">): void;
  /** Starts checking the files for renewals. */
  start(): void;
  /** Stops checking the files. */
  stop(): Promise<void>;
}

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
export function openTls({
  files,
  onRenewed,
  onFailed,
  checkIntervalMs = CHECK_INTERVAL_MS,
}: TlsOptions): Tls {
  const read = () => optionsOf(readFiles(files));
  const servers: Pick<Server, "setSecureContext">[] = [];
  let inUse = read();

  const checking = createRepeating({
    intervalMs: checkIntervalMs,
    onFailed,
    async work() {
      const found = read();
      if (found.cert === inUse.cert && found.key === inUse.key && found.ca === inUse.ca) return;
      inUse = found;
      for (const server of servers) server.setSecureContext(found);
      onRenewed();
    },
  });

  return {
    get options() {
      return inUse;
    },
    asksClients: files.clientCa !== undefined,
    follow(server) {
      servers.push(server);
    },
    start: checking.start,
    stop: checking.stop,
  };
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
