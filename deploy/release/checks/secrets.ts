import { readdir, readFile, stat } from "node:fs/promises";
import { join, sep } from "node:path";

/** Names of files that hold secrets. */
const SECRET_FILE =
  /(^|\/)(\.env(\..*)?|\.npmrc|\.netrc|\.pgpass|id_(rsa|dsa|ecdsa|ed25519)|kubeconfig|.*\.(pem|key|p12|pfx|jks|kdbx))$/;

/** Texts that are secrets, also in strings of programs. Placeholders, such as PASSWORD, are not secrets. */
const SECRET_TEXTS: Readonly<Record<string, RegExp>> = {
  "a private key": /-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----[A-Za-z0-9+/=\s\\]{64}/,
  "an API key of Onceward": /\bow_[a-z0-9]{16}_[A-Za-z0-9_-]{43}\b/,
  "a token of npm": /\bnpm_[A-Za-z0-9]{36}\b|:_authToken=[^\s$]/,
  "a token of a forge": /\bgh[pousr]_[A-Za-z0-9]{36}\b|\bgithub_pat_\w{22}_\w{59}\b|\bglpat-[\w-]{20}/,
  "a key of a cloud": /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[\w-]{35}\b/,
  "a JSON Web Token": /\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{20,}/,
  "a pepper": /\bONCEWARD_API_KEY_PEPPER["']?\s*[=:]\s*["']?[0-9a-f]{32,}/,
  "a URL with a password": /\b[a-z+]+:\/\/[\w.%-]+:(?!password\b|PASSWORD\b|secret\b)[^\s:@/$<{"'`]+@[\w.-]/,
};

/** Returns the secrets in the files of a folder, and the paths of this machine. */
export async function secretProblems(
  dir: string,
  machinePaths: readonly string[],
): Promise<readonly string[]> {
  const problems: string[] = [];
  for (const name of (await readdir(dir, { recursive: true })).sort()) {
    const file = join(dir, name);
    if (!(await stat(file)).isFile()) continue;
    if (SECRET_FILE.test(name.replaceAll(sep, "/"))) problems.push(`${name} is a file for secrets`);
    const text = await readFile(file, "latin1");
    for (const [what, pattern] of Object.entries(SECRET_TEXTS)) {
      if (pattern.test(text)) problems.push(`${name} contains ${what}`);
    }
    for (const path of machinePaths) {
      if (text.includes(path)) problems.push(`${name} contains a path of this machine`);
    }
  }
  return problems;
}
