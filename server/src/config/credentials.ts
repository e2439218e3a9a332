import { JWT_ALGORITHMS } from "../auth/jwt-algorithms.ts";
import { anyText, httpsUrl, optional, someOf, variable } from "./kinds.ts";

/** Tokens of an issuer, as credentials beside API keys. */
export const JWT_VARIABLES = {
  ONCEWARD_JWT_ISSUER: variable(
    optional(anyText),
    undefined,
    "Takes [tokens](#tokens) of this issuer (their `iss`) as credentials, beside API keys.",
  ),
  ONCEWARD_JWT_AUDIENCE: variable(
    optional(anyText),
    undefined,
    "Whom tokens must be meant for (their `aud`); required with an issuer.",
  ),
  ONCEWARD_JWT_JWKS_URL: variable(
    optional(httpsUrl),
    undefined,
    "Where the issuer publishes its keys; required with an issuer.",
  ),
  ONCEWARD_JWT_ALGORITHMS: variable(
    someOf(JWT_ALGORITHMS),
    "RS256,PS256,ES256,EdDSA",
    "What tokens may be signed with.",
  ),
  ONCEWARD_JWT_TENANT_CLAIM: variable(
    anyText,
    "onceward_tenant",
    "The claim that names a token's tenant; an operator's has none.",
  ),
  ONCEWARD_JWT_ROLE_CLAIM: variable(
    anyText,
    "onceward_role",
    "The claim that says `CALLER`, `TENANT_ADMIN` or `OPERATOR`; a token without it is a caller's.",
  ),
  ONCEWARD_JWT_NAMESPACES_CLAIM: variable(
    anyText,
    "onceward_namespaces",
    "The claim that lists the only namespaces a token is good for; without it, it is good for all.",
  ),
} as const;

/** How connections to all three ports are encrypted. */
export const TLS_VARIABLES = {
  ONCEWARD_TLS_CERT: variable(
    optional(anyText),
    undefined,
    "A PEM file with the server's certificate and those above it: [TLS](#tls) on all three ports.",
  ),
  ONCEWARD_TLS_KEY: variable(optional(anyText), undefined, "The PEM file with the certificate's key."),
  ONCEWARD_TLS_CLIENT_CA: variable(
    optional(anyText),
    undefined,
    "A PEM file with authorities: clients must show a certificate of one of them.",
  ),
} as const;

type Name = keyof typeof JWT_VARIABLES | keyof typeof TLS_VARIABLES;

/** An empty audience would take every token of the issuer, whomever it was meant for. */
const TOKENS = ["ONCEWARD_JWT_ISSUER", "ONCEWARD_JWT_AUDIENCE", "ONCEWARD_JWT_JWKS_URL"] as const;

/** What is missing for what is there to mean anything. */
export function incompleteCredentials(config: { readonly [Variable in Name]?: unknown }): readonly string[] {
  const problems: string[] = [];
  const need = (given: readonly Name[], needed: readonly Name[], why: string) => {
    if (!given.some((name) => config[name] !== undefined)) return;
    for (const name of needed) if (config[name] === undefined) problems.push(`${name} is required ${why}`);
  };
  need(TOKENS, TOKENS, `where tokens are taken: ${TOKENS.join(", ")} go together`);
  need(["ONCEWARD_TLS_KEY", "ONCEWARD_TLS_CLIENT_CA"], ["ONCEWARD_TLS_CERT"], "for TLS");
  need(["ONCEWARD_TLS_CERT", "ONCEWARD_TLS_CLIENT_CA"], ["ONCEWARD_TLS_KEY"], "for TLS");
  return problems;
}
