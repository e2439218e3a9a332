import { isKeyLength, parseIdempotencyKey, parseStructuredKey } from "../keys/idempotency-key.ts";
import type { Problem, ProblemBody, ProblemStatuses, ProblemType } from "./problems.ts";

/** What a profile prescribes. Each value has its source in the guide "Profiles of HTTP". */
interface Profile {
  /** The methods that are guarded if the options name none. */
  readonly methods: readonly string[];
  /** Whether a request without a key is refused if the options do not say. */
  readonly required: boolean;
  /** The form of the header's value. */
  readonly key: keyof typeof KEY_FORMS;
  /** What a key belongs to, besides the caller: an endpoint by its route, by its path, or all endpoints. */
  readonly scope: keyof typeof SCOPES;
  /** What must be the same in each attempt: the whole request, or its body as a JSON value. */
  readonly compares: "request" | "JSON body";
  /** The header, with the value `true`, that marks a replay. */
  readonly replayed: string | undefined;
  /** Whether responses have the request's Idempotency-Key. */
  readonly echoes: boolean;
  /** Whether 5xx are not stored even if the option `stores` says so. */
  readonly dropsServerErrors: boolean;
  /** The format of a refusal's body. */
  readonly format: keyof typeof FORMATS;
  readonly statuses: ProblemStatuses;
  /** The codes that the protocol names; the others are made of the problem's type. */
  readonly codes: Readonly<Partial<Record<ProblemType, string>>>;
}

/** The forms of the header's value. Each returns the key; undefined if the value is malformed. */
const KEY_FORMS = {
  /** A structured-field string, or visible ASCII without quotes: the same key. */
  "string or bare": parseIdempotencyKey,
  /** A structured-field string alone. */
  string: parseStructuredKey,
  /** 1-255 characters of printable ASCII; quotes are a part of the key. */
  opaque: (header: string) => (/^[\x20-\x7e]+$/.test(header) && isKeyLength(header) ? header : undefined),
} satisfies Record<string, (header: string) => string | undefined>;

interface Endpoint {
  readonly method: string;
  readonly route: string;
  readonly path: string;
}

const SCOPES = {
  route: ({ method, route }: Endpoint) => [method, route],
  path: ({ method, path }: Endpoint) => [method, path],
  "all endpoints": () => [],
} satisfies Record<string, (endpoint: Endpoint) => readonly string[]>;

/** The bodies of refusals, as JSON. */
const FORMATS = {
  "RFC 9457": ({ type, title, status, detail }: Problem) => ({ type, title, status, detail }),
  Stripe: ({ status, detail }: Problem, code: string) => {
    const message = detail;
    if (code === "idempotency_error") return { error: { type: code, message } };
    return { error: { type: status < 500 ? "invalid_request_error" : "api_error", code, message } };
  },
  ACP: ({ status, detail }: Problem, code: string) => ({
    type: status < 500 ? "invalid_request" : "service_unavailable",
    code,
    message: detail,
  }),
  UCP: ({ detail }: Problem, code: string) => ({ code, content: detail }),
} satisfies Record<string, (problem: Problem, code: string) => object>;

const ONCEWARD: Profile = {
  methods: ["POST", "PATCH"],
  required: true,
  key: "string or bare",
  scope: "route",
  compares: "request",
  replayed: "idempotency-replayed",
  echoes: false,
  dropsServerErrors: false,
  format: "RFC 9457",
  statuses: {},
  codes: {},
};

/** The profiles of the wire. The guide, its tests and the type `HttpProfile` are derived from this table. */
export const PROFILES = {
  onceward: ONCEWARD,
  ietf: { ...ONCEWARD, key: "string", replayed: undefined },
  stripe: {
    ...ONCEWARD,
    methods: ["POST"],
    required: false,
    key: "opaque",
    scope: "all endpoints",
    replayed: "idempotent-replayed",
    format: "Stripe",
    statuses: { "key-reused": 400 },
    codes: { "key-reused": "idempotency_error", "in-progress": "idempotency_key_in_use" },
  },
  acp: {
    ...ONCEWARD,
    methods: ["POST"],
    key: "opaque",
    scope: "path",
    compares: "JSON body",
    replayed: "idempotent-replayed",
    echoes: true,
    dropsServerErrors: true,
    format: "ACP",
    codes: {
      "key-missing": "idempotency_key_required",
      "key-reused": "idempotency_conflict",
      "in-progress": "idempotency_in_flight",
    },
  },
  ucp: {
    ...ONCEWARD,
    methods: ["POST", "PUT"],
    required: false,
    key: "opaque",
    replayed: undefined,
    format: "UCP",
    statuses: { "key-reused": 409 },
  },
} satisfies Record<string, Profile>;

/** The protocol whose keys, statuses, bodies and headers a guard uses. */
export type HttpProfile = keyof typeof PROFILES;

/** A profile in the form that the guard uses. */
export interface Wire extends Omit<Profile, "key" | "format" | "codes"> {
  /** Returns the key in a header's value; undefined if it is malformed. */
  readonly parseKey: (header: string) => string | undefined;
  /** Returns the parts of an operation's key that name its endpoint. */
  readonly endpointOf: (request: Endpoint) => readonly string[];
  /** Writes the body of a refusal. */
  readonly writeBody: (problem: Problem) => ProblemBody;
}

/** Returns a profile by its name; undefined for an unknown name. */
export function wireOf(name: string): Wire | undefined {
  if (!Object.hasOwn(PROFILES, name)) return undefined;
  const profile: Profile = PROFILES[name as HttpProfile];
  const { key, scope, format, codes } = profile;
  return {
    ...profile,
    parseKey: KEY_FORMS[key],
    endpointOf: SCOPES[scope],
    writeBody(problem) {
      const type = problem.type.slice(problem.type.lastIndexOf(":") + 1) as ProblemType;
      const code = codes[type] ?? `idempotency_${type.replaceAll("-", "_")}`;
      return {
        contentType: format === "RFC 9457" ? "application/problem+json" : "application/json",
        body: JSON.stringify(FORMATS[format](problem, code)),
      };
    },
  };
}
