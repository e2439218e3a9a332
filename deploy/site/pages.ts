/** A page of the site. */
export interface Page {
  /** The Markdown file, or the program that the page shows, from the repository's root. */
  readonly source: string;
  /** The page's address, without `.html`; `index` is the first page. */
  readonly slug: string;
  /** The page's name in the navigation. */
  readonly title: string;
  /** What a reader finds there, in one line, for `llms.txt`. */
  readonly about: string;
}

/** Pages that are grouped in the navigation. */
export interface Group {
  readonly title: string;
  readonly pages: readonly Page[];
}

/** The site's pages, in the order of the navigation. A page that is generated has its source in `.build/`. */
export const GROUPS: readonly Group[] = [
  group("Start", [
    ofClients("tutorial", "Tutorial", "from nothing to a replay in the console, in five minutes"),
    page("README.md", "index", "What Onceward is", "the purpose, one call, the guarantees and their limits"),
    page(
      "deploy/site/playground.md",
      "playground",
      "Playground",
      "crash a worker and count the effects, in the page",
    ),
    ofClients("concepts", "How it works", "claim, lease, token, retention, late key, in a picture"),
    page("ARCHITECTURE.md", "architecture", "Architecture", "the way of a claim and the states of a record"),
  ]),
  group("Clients", [
    client("typescript", "TypeScript", "the client, and its guards for HTTP, RPC and queues"),
    client("python", "Python", "the client for blocking code and asyncio"),
    client("go", "Go", "the client, with guards for net/http and grpc-go"),
    client("http-proxy", "HTTP proxy", "guard an unmodified HTTP service in any language"),
    ofCli("probe", "Probe an HTTP API", "66 checks of what a service or an agent's tool does with keys"),
    ofClients("comparison", "Libraries compared", "ten libraries for HTTP handlers, by the probe's checks"),
    ofClients(
      "mcp-servers",
      "MCP servers compared",
      "fifteen published servers, and a call that is repeated",
    ),
    page(
      "clients/README.md",
      "other-languages",
      "Other languages",
      "call the service without a client of ours",
    ),
    client("mcp-proxy", "MCP proxy", "guard the tools of an unmodified MCP server"),
    client("conformance", "Cases for a client", "what a client of any language must pass"),
  ]),
  group("Recipes", [
    guide("http", "Guard an HTTP endpoint", "an Express endpoint that takes Idempotency-Key, and others"),
    recipe("payments", "Charge a card", "an Express endpoint whose clients disconnect and send again"),
    guide("webhooks", "Receive webhooks", "signed events of Stripe and others, in Express, Fastify, Next.js"),
    recipe("webhooks", "GitHub's webhooks", "signed events of GitHub, each delivered twice"),
    guide("emails", "Send e-mails", "which key, and what a crash does to a mail"),
    guide("cron", "Scheduled jobs", "a job that several machines start"),
    guide("imports", "Import files", "a key for each row, and a file that is uploaded twice"),
    guide("queues", "Consume a queue", "which adapter, which key, when to acknowledge"),
    recipe("rabbitmq", "RabbitMQ", "a worker that charges orders from a queue"),
    recipe("kafka", "Kafka", "a worker that charges orders from a topic"),
    recipe("nats", "NATS JetStream", "a worker that charges orders from a stream"),
    recipe("pubsub", "Google Pub/Sub", "a worker that charges orders from a subscription"),
    recipe("lambda", "AWS Lambda and SQS", "a function that gets batches of messages"),
    recipe("nestjs", "NestJS", "a controller that charges"),
    recipe("inbox", "Rows of your own Postgres", "the effect and its completion in one transaction"),
    recipe("agents", "Tools of an agent", "a refund that an agent asks for again after a crash"),
  ]),
  group("Guides", [
    guide("keys", "Choose a key", "what makes a good idempotency key"),
    guide("fingerprints", "Fingerprints", "which requests are the same"),
    guide("crashes", "Crash and lease", "RECLAIM or HOLD when a worker dies"),
    guide("providers", "What providers remember", "a key's life at 24 providers, and how to look it up"),
    guide("profiles", "Profiles of HTTP", "the draft, Stripe, ACP and UCP"),
    guide("late-retries", "Late retries", "a retry after its key was forgotten"),
    guide("fencing", "Fencing tokens", "conditional updates that refuse a stalled worker"),
    guide("agents", "Agents", "a tool call that a model makes twice"),
    guide("declined", "A declined card", "which retry is a new operation"),
    guide("outages", "Outages", "fail closed or open"),
    guide("kubernetes", "Kubernetes shutdown", "pods that stop in the middle"),
  ]),
  group("Coming from", [
    guide("from-stripe", "Stripe's keys", "what they cover, and what is left to you"),
    guide("broker-windows", "SQS FIFO, Kafka EOS", "what a broker's deduplication does not cover"),
    guide("from-redis", "Redis SET NX", "replace a lock in Redis"),
    guide("from-a-table", "A table of your own", "replace a table of processed ids"),
    guide("from-powertools", "Powertools for Lambda", "replace its idempotency utility"),
  ]),
  group("Tune and use", [
    ofCli("tenant-admins", "Tour for tenant admins", "retention, quotas, ambiguous keys"),
    page("clients/cli/README.md", "command-line", "Command line", "every command of `onceward`"),
    client("console", "Console", "the web console, screen by screen"),
    page(
      "server/insight.md",
      "insight",
      "Retention advice",
      "how the advice is computed, and how sure it is",
    ),
  ]),
  group("Operate", [
    page("deploy/README.md", "install", "Install", "Compose, secrets, balancer, TLS, upgrades"),
    page("deploy/helm/onceward/README.md", "helm", "Helm chart", "Kubernetes"),
    operation("managed", "Managed services", "RDS, Aurora, Cloud SQL, Azure, CloudNativePG, Redis, IAM"),
    operation("sizing", "Sizing", "what a replica, Postgres and a GiB of disk carry"),
    operation("observability", "Watch", "dashboards, alerts and objectives"),
    operation("runbook", "Runbook", "from an alert or an error to its end"),
    operation("recovery", "Backup and recovery", "failover, restore to a point in time"),
    operation("upgrade", "Upgrade", "new versions without downtime, and back"),
    ofCli("operators", "Tour for operators", "tenants, limits, replicas"),
    operation("cells", "Several installations", "cells, and moving a tenant between them"),
    operation("export", "Export", "grants and completions as CloudEvents, after the record"),
    operation("citus", "Citus", "records on several servers of Postgres"),
    operation("scale", "Large installations", "a million claims a second, 10¹² records, on paper"),
    operation("regions", "Regions", "where a key lives, and a lost region"),
    page("SECURITY.md", "security", "Security", "who can do what, and what protects it"),
  ]),
  group("Reference", [
    page("deploy/site/.build/api.md", "api", "API", "every call, message and field, from the proto files"),
    guide("errors", "Errors and remedies", "every reason, and what to do"),
    page(
      "clients/typescript/api.md",
      "typescript-api",
      "TypeScript options",
      "every type and option of the client",
    ),
    page("server/settings.md", "settings", "Settings", "every environment variable, tokens, TLS, limits"),
    page("server/metrics.md", "metrics", "Metrics", "every metric and its labels"),
    page("CHANGELOG.md", "changelog", "Changelog", "what changed"),
  ]),
  group("Evidence", [
    lab("bench", "Bench", "figures beside a table of your own"),
    lab("chaos", "Chaos", "histories of calls while everything fails"),
    lab("model", "The model", "the protocol, specified and searched"),
    page("server/README.md", "server", "The server", "commands, sources, the way of a claim, glossary"),
    page("CONTRIBUTING.md", "contributing", "Contribute", "set up, suites, where to change what"),
  ]),
];

function group(title: string, pages: readonly Page[]): Group {
  return { title, pages };
}

function page(source: string, slug: string, title: string, about: string): Page {
  return { source, slug, title, about };
}

/** The page of a client, or of its part. */
function client(name: string, title: string, about: string): Page {
  return page(`clients/${name}/README.md`, name, title, about);
}

/** A page about all clients. */
function ofClients(name: string, title: string, about: string): Page {
  return page(`clients/${name}.md`, name, title, about);
}

/** A page about the command line. */
function ofCli(name: string, title: string, about: string): Page {
  return page(`clients/cli/${name}.md`, name, title, about);
}

/** A page for operators. */
function operation(name: string, title: string, about: string): Page {
  return page(`deploy/${name}.md`, name, title, about);
}

/** The page of a program of the lab. */
function lab(name: string, title: string, about: string): Page {
  return page(`test/lab/${name}/README.md`, name, title, about);
}

/** A page that shows a program of the client's examples. */
function recipe(name: string, title: string, about: string): Page {
  return page(`clients/typescript/examples/${name}.ts`, `recipes-${name}`, title, about);
}

function guide(name: string, title: string, about: string): Page {
  return page(`clients/typescript/guides/${name}.md`, name, title, about);
}
