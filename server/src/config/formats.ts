import * as v from "valibot";
import { DURATION_TEXT, parseDurationMs } from "../domain/duration-text.ts";

/** The metadata of a format's schema. */
export interface FormatMetadata {
  /** Completes the sentence "the variable must be …". */
  readonly format: string;
  /** The value must not be printed. */
  readonly secret?: boolean;
  /** Follows a parsed value where it is printed, so that the text can be parsed again. */
  readonly unit?: string;
}

/** Text without restrictions. */
export const anyText = v.pipe(v.string(), v.metadata({ format: "text" }));

/** Returns the schema of a secret text. */
export function secretText(minLength: number) {
  return v.pipe(
    v.string(),
    v.minLength(minLength),
    v.metadata({ format: `text of at least ${minLength} characters`, secret: true }),
  );
}

/** Returns the schema of a text that `isValid` accepts and that must not be printed. */
export function secretWith(isValid: (text: string) => boolean, format: string) {
  return v.pipe(v.string(), v.check(isValid), v.metadata({ format, secret: true }));
}

/**
 * The URL of a Postgres database. Secret because it can contain a password. `pg` would read any other text as
 * a host name.
 */
export const postgresUrl = secretWith(
  // A user without a host is valid together with `?host=/run/postgresql`, but not in a URL of the URL
  // standard.
  (text) => /^postgres(ql)?:\/\//.test(text) && URL.canParse(text.replace("@/", "@host/")),
  "a URL such as postgresql://user:password@host:5432/database",
);

/** A URL whose response can be trusted: nothing between here and its server can change it. */
export const trustedUrl = v.pipe(
  v.string(),
  v.check(isTrustedUrl),
  v.metadata({ format: "an https URL without a user; http on a loopback address only" }),
);

/** Returns whether nothing between here and the URL's server can read or change what is sent. */
export function isTrustedUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password } = new URL(text);
  const isProtected = protocol === "https:" || (protocol === "http:" && isLoopback(hostname));
  return isProtected && username === "" && password === "";
}

/** The origin of a trusted URL, as browsers write it. */
export const trustedOrigin = v.pipe(
  v.string(),
  v.check((text) => isTrustedUrl(text) && new URL(text).href === `${new URL(text).origin}/`),
  v.transform((text) => new URL(text).origin),
  v.metadata({ format: "an origin such as https://onceward.example; http on a loopback address only" }),
);

/** Returns whether a host name or address can be reached from this machine only. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host);
}

/** A boolean, written `true` or `false`. */
export const boolean = v.pipe(
  v.picklist(["true", "false"]),
  v.transform((text) => text === "true"),
  v.metadata({ format: "true or false" }),
);

/** Returns the schema of one of the choices. */
export function oneOf<const Choices extends readonly string[]>(choices: Choices) {
  return v.pipe(v.picklist(choices), v.metadata({ format: `one of ${choices.join(", ")}` }));
}

/**
 * Returns the schema of one or more of the choices, separated by commas. Its value has the order of
 * `choices`.
 */
export function someOf<const Choices extends readonly string[]>(choices: Choices) {
  return v.pipe(
    v.string(),
    v.transform((text) => text.split(",").map((name) => name.trim())),
    v.array(v.picklist(choices)),
    v.transform((names): readonly Choices[number][] => choices.filter((choice) => names.includes(choice))),
    v.metadata({ format: `some of ${choices.join(", ")}, with commas between them` }),
  );
}

/** Returns the schema of a decimal whole number. */
export function wholeNumber(min: number, max: number) {
  return v.pipe(
    v.string(),
    v.regex(/^\d{1,9}$/),
    v.transform(Number),
    v.minValue(min),
    v.maxValue(max),
    v.metadata({ format: `a whole number from ${min} to ${max}` }),
  );
}

/**
 * Returns the schema of a duration such as `250ms`, `3s`, `10m`, `1h` or `7d`; its value is in milliseconds.
 */
export function duration(min: string, max: string) {
  return v.pipe(
    v.string(),
    v.regex(DURATION_TEXT),
    v.transform(parseDurationMs),
    v.minValue(parseDurationMs(min)),
    v.maxValue(parseDurationMs(max)),
    v.metadata({ format: `a duration from ${min} to ${max}, such as 250ms, 3s, 10m or 1h`, unit: "ms" }),
  );
}

/** The room for a path in Linux' `sockaddr_un`, with its end, less the 9 bytes by which the socket's first name is longer. */
const MAX_SOCKET_PATH_BYTES = 98;

/** The path of a Unix socket. */
export const socketPath = v.pipe(
  v.string(),
  v.check((text) => text.startsWith("/") && Buffer.byteLength(text) <= MAX_SOCKET_PATH_BYTES),
  v.metadata({ format: `an absolute path of at most ${MAX_SOCKET_PATH_BYTES} bytes` }),
);

/** The rights of a file, as `chmod` takes them. Its owner may write: a process asks the socket that a killed one has left. */
export const fileMode = v.pipe(
  v.string(),
  v.regex(/^0?[2367][0-7]{2}$/),
  v.transform((text) => Number.parseInt(text, 8)),
  v.metadata({ format: "an octal number such as 0660, writable by its owner" }),
);
