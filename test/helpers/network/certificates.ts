import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** A self-signed certificate for 127.0.0.1 and localhost, as PEM files. */
export interface Certificate {
  readonly certificateFile: string;
  readonly keyFile: string;
  /** The contents of the files, for a client or another server. */
  readonly pem: { readonly cert: string; readonly key: string };
  remove(): Promise<void>;
}

/** Creates a certificate that is valid for some days, with the `openssl` command. */
export async function makeCertificate(days = 1): Promise<Certificate> {
  const dir = await mkdtemp(join(tmpdir(), "ow-certificate-"));
  const [certificateFile, keyFile] = [join(dir, "certificate.pem"), join(dir, "key.pem")];
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", keyFile];
  const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"];
  await run("openssl", ["req", "-x509", "-days", String(days), ...key, ...subject, "-out", certificateFile]);
  return {
    certificateFile,
    keyFile,
    pem: { cert: await readFile(certificateFile, "utf8"), key: await readFile(keyFile, "utf8") },
    remove: () => rm(dir, { recursive: true, force: true }),
  };
}

/** Returns the settings of a server with a certificate, and with an authority of clients' certificates. */
export function tlsSettings(certificate: Certificate, clientCa?: Certificate): Record<string, string> {
  return {
    ONCEWARD_TLS_CERT: certificate.certificateFile,
    ONCEWARD_TLS_KEY: certificate.keyFile,
    ...(clientCa && { ONCEWARD_TLS_CLIENT_CA: clientCa.certificateFile }),
  };
}
