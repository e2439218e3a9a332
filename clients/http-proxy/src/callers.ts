import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { TLSSocket } from "node:tls";
import { createRemoteJWKSet, customFetch, decodeJwt, errors, jwtVerify } from "jose";
import type { CallerConfig } from "./config.ts";
import { asVariable, valuesOf } from "./headers.ts";

/** Who sends a request, or why it is refused. */
export type Identified =
  | { readonly kind: "caller"; readonly caller: string }
  | { readonly kind: "refused"; readonly status: 400 | 401 | 503; readonly title: string };

type TokenConfig = Extract<CallerConfig, { jwt: unknown }>["jwt"];
type VerifiedToken = Extract<TokenConfig, { jwksUrl: unknown }>;

/** Finds the caller of a request. Never rejects. */
export type IdentifyCaller = (incoming: IncomingMessage) => Promise<Identified>;

/** Some hundred keys. */
const MAX_KEYS_BYTES = 256 * 1024;
const KEYS_TIMEOUT_MS = 5000;
/** Signatures by a key pair: a published key must not verify what a shared secret signed. */
const ALGORITHMS = ["ES256", "ES384", "ES512", "EdDSA", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512"];

/** Returns a function that finds the caller as a route is configured. Callers become hashes, because they become part of a record's key. */
export function identifyBy(source: CallerConfig): IdentifyCaller {
  if ("constant" in source) return async () => known(source.constant);
  if ("clientCertificate" in source) return async ({ socket }) => byCertificate(socket);
  if ("jwt" in source) return byToken(source.jwt);
  const isKey = "apiKey" in source;
  const name = asVariable(isKey ? source.apiKey : source.header);
  return async ({ rawHeaders }) => {
    const [value = "", ...others] = valuesOf(rawHeaders, name);
    const caller = isKey ? credentialIn(value) : value;
    if (caller === "") return refused(400, "The request has no header that identifies its caller.");
    if (others.length > 0) return refused(400, SEVERAL);
    return known(hashed(caller));
  };
}

/** Returns the credential in a header's value, without its scheme; empty if there is none, or one of several parts. */
function credentialIn(value: string): string {
  return /^\s*(?:\S+\s+)?(\S+)\s*$/.exec(value)?.[1] ?? "";
}

/** The service may take another one of them than the proxy. */
const SEVERAL = "The request has several headers that identify its caller.";

function byCertificate(socket: IncomingMessage["socket"]): Identified {
  const certificate =
    socket instanceof TLSSocket && socket.authorized ? socket.getPeerX509Certificate() : undefined;
  if (certificate === undefined || certificate.subject === "")
    return refused(401, "The client has no certificate with a subject.");
  return known(hashed(certificate.subject));
}

function byToken(config: TokenConfig): IdentifyCaller {
  const { claim } = config;
  const name = asVariable(config.header);
  const payloadOf = "jwksUrl" in config ? verifierOf(config) : async (token: string) => decodeJwt(token);
  return async ({ rawHeaders }) => {
    const [value = "", ...others] = valuesOf(rawHeaders, name);
    if (others.length > 0) return refused(400, SEVERAL);
    const [, token = ""] = /^(?:Bearer +)?(\S+)$/i.exec(value) ?? [];
    // Node takes no more than 16 KiB of headers.
    if (token === "") return refused(401, "The request has no token that identifies its caller.");
    try {
      const payload = await payloadOf(token);
      const caller = payload[claim];
      if (typeof caller === "string" && caller !== "")
        return known(hashed(`${payload.iss ?? ""}\n${caller}`));
      return refused(401, `The token's claim ${claim} is not a text.`);
    } catch (error) {
      if (error instanceof KeysUnavailable || error instanceof errors.JWKSTimeout)
        return refused(503, "The keys of the token's issuer are unavailable.");
      return refused(401, "The token is not valid.");
    }
  };
}

/** Returns a function that returns the claims of a token that the issuer's published keys verify. */
function verifierOf({ claim, jwksUrl, issuer, audience }: VerifiedToken) {
  const keys = createRemoteJWKSet(new URL(jwksUrl), {
    timeoutDuration: KEYS_TIMEOUT_MS,
    [customFetch]: fetchKeys,
  });
  return async (token: string) => {
    const { payload } = await jwtVerify(token, keys, {
      ...{ issuer, algorithms: ALGORITHMS, requiredClaims: ["exp", claim] },
      ...(audience !== undefined && { audience }),
    });
    return payload;
  };
}

/** The issuer's keys could not be fetched: the token may be valid. */
class KeysUnavailable extends Error {
  override readonly name = "KeysUnavailable";
}

/** Fetches an issuer's keys. @throws KeysUnavailable for an error, another status than 200, or too many bytes. */
async function fetchKeys(url: string, init: RequestInit): Promise<Response> {
  try {
    const response = await fetch(url, init);
    if (!response.ok) throw new Error(`status ${response.status}`);
    const chunks: Uint8Array[] = [];
    let sizeBytes = 0;
    for await (const chunk of response.body ?? []) {
      sizeBytes += chunk.byteLength;
      if (sizeBytes > MAX_KEYS_BYTES) throw new Error(`more than ${MAX_KEYS_BYTES} bytes`);
      chunks.push(chunk);
    }
    return new Response(Buffer.concat(chunks), { status: 200 });
  } catch (cause) {
    throw new KeysUnavailable("the issuer's keys can't be fetched", { cause });
  }
}

function known(caller: string): Identified {
  return { kind: "caller", caller };
}

function refused(status: 400 | 401 | 503, title: string): Identified {
  return { kind: "refused", status, title };
}

function hashed(value: string): string {
  return createHash("sha256").update(value).digest("base64url");
}
