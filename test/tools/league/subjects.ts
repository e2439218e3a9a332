/** A library behind a small service. */
export interface Subject {
  readonly name: string;
  readonly framework: string;
  readonly store: string;
  /** Where it comes from; `here` is this repository. */
  readonly registry: "npm" | "PyPI" | "Go" | "here";
  /** Packages that are installed, with versions. */
  readonly packages: readonly string[];
  /** The program and its arguments; PORT and REDIS are replaced. */
  readonly app: readonly string[];
  /** Checks whose promise its documentation does not make. */
  readonly unclaimed: readonly string[];
  /** The header that marks a replay, by its documentation. */
  readonly replayHeader?: string;
}

const OTHER_BODY = [
  "other.body",
  "other.body-effect",
  "other.body-kept",
  "other.body-explained",
  "other.body-together",
  "body.large-tail",
];
const ODD_KEYS = [
  "key.long",
  "key.ends",
  "key.case",
  "key.spaces",
  "key.separators",
  "key.escapes",
  "key.quotes",
  "key.unicode",
  "key.two",
];
const CALLERS = ["other.caller", "other.caller-kept"];
const ENDPOINTS = ["other.path", "other.method"];
const FASTAPI = { framework: "FastAPI", registry: "PyPI" } as const;
const SERVED = ["fastapi==0.165.0", "uvicorn==0.54.0", "redis==8.1.0"];
const fastApi = (subject: string) => ["python", "fastapi_app.py", subject, "PORT", "REDIS"];
const DJANGO = { framework: "Django", registry: "PyPI" } as const;
const djangoApp = (subject: string) => ["python", "django_app.py", subject, "PORT", "REDIS"];
/** Django's own server does not read bodies in chunks. */
const DJANGO_SERVER = "body.chunked";

function ours(profile: string, replayHeader?: string): Subject {
  return {
    name: `Onceward, profile ${profile}`,
    framework: "Express",
    store: "the service",
    registry: "here",
    packages: [],
    app: ["node", "onceward.ts", profile, "PORT"],
    unclaimed: [],
    ...(replayHeader !== undefined && { replayHeader }),
  };
}

/** Every subject as its README shows it, with the store that it recommends or, if that needs another server, its default. */
export const SUBJECTS: readonly Subject[] = [
  ours("onceward", "Idempotency-Replayed"),
  ours("stripe", "Idempotent-Replayed"),
  ours("acp", "Idempotent-Replayed"),
  ours("ucp"),
  {
    name: "express-idempotency 1.0.6",
    framework: "Express",
    store: "memory (default)",
    registry: "npm",
    packages: ["express@5.2.1", "express-idempotency@1.0.6"],
    app: ["node", "express-idempotency.mjs", "PORT"],
    unclaimed: CALLERS,
  },
  {
    name: "@node-idempotency/nestjs 1.0.4",
    framework: "NestJS",
    store: "memory",
    registry: "npm",
    packages: [
      "@nestjs/common@10",
      "@nestjs/core@10",
      "@nestjs/platform-express@10",
      "reflect-metadata@0.2",
      "rxjs@7",
      "@node-idempotency/nestjs@1.0.4",
    ],
    app: ["node", "node-idempotency.cjs", "PORT"],
    unclaimed: CALLERS,
  },
  {
    ...FASTAPI,
    name: "asgi-idempotency-header 0.2.0",
    store: "Redis",
    packages: [...SERVED, "asgi-idempotency-header==0.2.0"],
    app: fastApi("asgi-idempotency-header"),
    // "Modelled after Stripe", which replays a 5xx.
    unclaimed: [...OTHER_BODY, ...CALLERS, ...ENDPOINTS, "error.server", "error.server-effect"],
    replayHeader: "Idempotent-Replayed",
  },
  {
    ...FASTAPI,
    name: "fastapi-idempotency 0.1.1",
    store: "memory (default)",
    packages: [...SERVED, "fastapi-idempotency==0.1.1"],
    app: fastApi("fastapi-idempotency"),
    // Without a key it recognizes the same request for some seconds, on purpose.
    unclaimed: ["key.missing", "key.empty"],
  },
  {
    ...FASTAPI,
    name: "ichido 0.1.0",
    store: "Redis",
    packages: [...SERVED, "ichido==0.1.0"],
    app: fastApi("ichido"),
    unclaimed: CALLERS,
  },
  {
    ...FASTAPI,
    name: "idemkit 1.0.2",
    store: "Redis",
    packages: [...SERVED, "idemkit[asgi,redis]==1.0.2"],
    app: fastApi("idemkit"),
    unclaimed: [],
    replayHeader: "Idempotency-Replayed",
  },
  {
    ...FASTAPI,
    name: "pyidempotent 0.1.0",
    store: "Redis",
    packages: [...SERVED, "pyidempotent==0.1.0"],
    app: fastApi("pyidempotent"),
    unclaimed: [...CALLERS, ...ENDPOINTS],
  },
  {
    ...DJANGO,
    name: "django-idempotency-key 1.3.0",
    store: "memory (default)",
    packages: ["django==4.2.30", "djangorestframework==3.16.1", "django-idempotency-key==1.3.0"],
    app: djangoApp("django-idempotency-key"),
    // Body, path and method are part of the key: another request is another operation.
    unclaimed: [...OTHER_BODY, DJANGO_SERVER],
  },
  {
    ...DJANGO,
    name: "drf-idempotency 1.0.0",
    store: "Redis",
    packages: ["django==5.2.19", "djangorestframework==3.18.3", "drf-idempotency[redis]==1.0.0"],
    app: djangoApp("drf-idempotency"),
    unclaimed: [...CALLERS, DJANGO_SERVER],
    replayHeader: "Idempotent-Replayed",
  },
  {
    name: "Fiber 2.52.15, middleware idempotency",
    framework: "Fiber",
    store: "memory (default)",
    registry: "Go",
    packages: ["github.com/gofiber/fiber/v2@v2.52.15"],
    app: ["fiber", "PORT"],
    // Keys are UUIDs, of 36 characters, by default.
    unclaimed: [...OTHER_BODY, ...CALLERS, ...ENDPOINTS, ...ODD_KEYS],
  },
];

/** Libraries that were looked for in their registries on the date of the table, and are not in it. */
export const ABSENT: readonly (readonly [name: string, reason: string])[] = [
  ["hono-idempotency", "npm's registry did not serve it"],
  ["@idempot/express-middleware, hono-middleware, fastify-middleware", "npm's registry did not serve them"],
  ["@nestarc/idempotency", "npm's registry did not serve it"],
  ["@node-idempotency/express, fastify", "npm's registry did not serve them"],
  ["Powertools for AWS Lambda", "guards functions, and not HTTP requests"],
];
