type Parsed<Value> = { readonly ok: true; readonly value: Value } | { readonly ok: false };

/** How the text of an environment variable becomes a value. */
export interface Kind<Value> {
  readonly parse: (text: string) => Parsed<Value>;
  /** What the text must be, to go after "must be". */
  readonly format: string;
  /** Never shown. */
  readonly secret?: boolean;
  /** What goes behind a value to make it text that parses again. */
  readonly unit?: string;
  /** May be missing without a default. */
  readonly optional?: boolean;
}

/** One environment variable: how it is read, what it is if unset, and what it does. */
export interface Variable<Value> {
  readonly kind: Kind<Value>;
  /** As it would be set; undefined: there is none. */
  readonly fallback: string | undefined;
  readonly help: string;
}

export function variable<Value>(
  kind: Kind<Value>,
  fallback: string | undefined,
  help: string,
): Variable<Value> {
  return { kind, fallback, help };
}

const FAILED: Parsed<never> = { ok: false };

export const anyText: Kind<string> = { parse: (value) => ({ ok: true, value }), format: "text" };

/** Text that is never shown, and is hard to guess. */
export function secretText(minLength: number): Kind<string> {
  return {
    parse: (text) => (text.length >= minLength ? { ok: true, value: text } : FAILED),
    format: `text of at least ${minLength} characters`,
    secret: true,
  };
}

/** How Postgres is reached; never shown, because a password may be part of it. `pg` would take any other text for a host. */
export const postgresUrl: Kind<string> = {
  // A user without a host is good for `?host=/run/postgresql`, but no URL to the URL standard.
  parse: (text) =>
    /^postgres(ql)?:\/\//.test(text) && URL.canParse(text.replace("@/", "@host/"))
      ? { ok: true, value: text }
      : FAILED,
  format: "a URL such as postgresql://user:password@host:5432/database",
  secret: true,
};

/** Where what is believed is fetched from: nobody on the way may change it. */
export const httpsUrl: Kind<string> = {
  parse: (text) => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    const isSafe = url?.protocol === "https:" || (url?.protocol === "http:" && isLoopback(url.hostname));
    return isSafe && url.username === "" && url.password === "" ? { ok: true, value: text } : FAILED;
  },
  format: "an https URL without a user; http on a loopback address only",
};

/** Whether only this machine reaches a host, by what it is called. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host);
}

/** A kind whose variable may be missing. */
export function optional<Value>(kind: Kind<Value>): Kind<Value | undefined> {
  return { ...kind, optional: true };
}

export const yesOrNo: Kind<boolean> = {
  parse: (text) => (text === "true" || text === "false" ? { ok: true, value: text === "true" } : FAILED),
  format: "true or false",
};

export function oneOf<const Choice extends string>(choices: readonly Choice[]): Kind<Choice> {
  return {
    parse: (text) => {
      const value = choices.find((choice) => choice === text);
      return value === undefined ? FAILED : { ok: true, value };
    },
    format: `one of ${choices.join(", ")}`,
  };
}

/** One or more of the choices, with commas between them. */
export function someOf<const Choice extends string>(choices: readonly Choice[]): Kind<readonly Choice[]> {
  return {
    parse: (text) => {
      const names = text.split(",").map((name) => name.trim());
      const value = choices.filter((choice) => names.includes(choice));
      return value.length === new Set(names).size ? { ok: true, value } : FAILED;
    },
    format: `some of ${choices.join(", ")}, with commas between them`,
  };
}

export function wholeNumber(min: number, max: number): Kind<number> {
  return {
    parse: (text) => {
      const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
      return value >= min && value <= max ? { ok: true, value } : FAILED;
    },
    format: `a whole number from ${min} to ${max}`,
  };
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A duration such as `250ms`, `3s`, `10m`, `1h` or `7d`, in milliseconds. */
export function milliseconds(min: string, max: string): Kind<number> {
  return {
    parse: (text) => {
      const value = toMs(text);
      return value >= toMs(min) && value <= toMs(max) ? { ok: true, value } : FAILED;
    },
    format: `a duration from ${min} to ${max}, such as 250ms, 3s, 10m or 1h`,
    unit: "ms",
  };
}

/** NaN if it isn't one. */
function toMs(text: string): number {
  const [, digits, unit = ""] = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text) ?? [];
  return digits === undefined ? Number.NaN : Number(digits) * (UNIT_MS[unit] ?? Number.NaN);
}
