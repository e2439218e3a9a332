import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
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

/** Creates a certificate that is valid for some days, with the `openssl` command. @param name the common name of its subject. */
export async function makeCertificate(days = 1, name = "localhost"): Promise<Certificate> {
  const request = ["req", "-x509", "-days", String(days), ...namesOf(name)];
  return inNewDir(({ keyFile, certificateFile }) =>
    run("openssl", [...request, ...keyArgs(keyFile), "-out", certificateFile]),
  );
}

/** Creates a certificate that has expired: `openssl` makes one with given dates only as an authority with files of its own. */
export async function makeExpiredCertificate(): Promise<Certificate> {
  return inNewDir(async ({ dir, keyFile, certificateFile }) => {
    const request = join(dir, "request.pem");
    await run("openssl", ["req", ...keyArgs(keyFile), ...namesOf("localhost"), "-out", request]);
    const config = join(dir, "authority.cnf");
    await writeFile(config, EXPIRED_AUTHORITY);
    await writeFile(join(dir, "index"), "");
    await writeFile(join(dir, "serial"), "01");
    const dates = ["-startdate", "20200101000000Z", "-enddate", "20200102000000Z"];
    const files = ["-keyfile", keyFile, "-in", request, "-out", certificateFile];
    await run("openssl", ["ca", "-batch", "-notext", "-selfsign", "-config", config, ...dates, ...files], {
      cwd: dir,
    });
  });
}

function namesOf(name: string): string[] {
  return ["-subj", `/CN=${name}`, "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"];
}

const EXPIRED_AUTHORITY = `
[ca]
default_ca = own
[own]
database = index
serial = serial
new_certs_dir = .
default_md = sha256
policy = any
copy_extensions = copy
[any]
commonName = supplied
`;

function keyArgs(keyFile: string): string[] {
  return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", keyFile];
}

async function inNewDir(
  make: (files: { dir: string; keyFile: string; certificateFile: string }) => Promise<unknown>,
): Promise<Certificate> {
  const dir = await mkdtemp(join(tmpdir(), "ow-certificate-"));
  const [certificateFile, keyFile] = [join(dir, "certificate.pem"), join(dir, "key.pem")];
  await make({ dir, keyFile, certificateFile });
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
