import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** A self-signed certificate of 127.0.0.1 and localhost, as PEM files; made by the `openssl` command. */
export interface Certificate {
  readonly certificateFile: string;
  readonly keyFile: string;
  remove(): Promise<void>;
}

/** @see Certificate */
export async function makeCertificate(): Promise<Certificate> {
  const dir = await mkdtemp(join(tmpdir(), "ow-certificate-"));
  const [certificateFile, keyFile] = [join(dir, "certificate.pem"), join(dir, "key.pem")];
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", keyFile];
  const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"];
  await run("openssl", ["req", "-x509", "-days", "1", ...key, ...subject, "-out", certificateFile]);
  return { certificateFile, keyFile, remove: () => rm(dir, { recursive: true, force: true }) };
}
