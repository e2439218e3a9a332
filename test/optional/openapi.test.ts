import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { newDir } from "../support/new-dir.ts";
import { createApiKey, createTenant } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";

const run = promisify(execFile);
const TIMEOUT_MS = 600_000;
/** The requests of schemathesis also wait (`ClaimRequest.wait`), up to a minute. */
const REQUEST_TIMEOUT_S = "70";
/** No request has a deadline that is too short: 504 is an answer to those. */
const CONFIG = '[parameters]\n"header.connect-timeout-ms" = "69000"\n';

/** No answer is a 5xx, and every answer has a status, a content type and a body that the document describes. */
const CHECKS = [
  "not_a_server_error",
  "status_code_conformance",
  "content_type_conformance",
  "response_schema_conformance",
];

const hasSchemathesis = await run("schemathesis", ["--version"]).then(
  () => true,
  () => false,
);
if (!hasSchemathesis)
  process.stderr.write("The fuzzing of /openapi.yaml is skipped: pip install schemathesis==4.32.5.\n");

const { database, server } = useServer();

test.runIf(hasSchemathesis).each([
  ["IdempotencyService|IdentityService", "CALLER"],
  ["TenantAdminService", "TENANT_ADMIN"],
  ["OperatorService", "OPERATOR"],
] as const)(
  "schemathesis finds no answer of %s that differs from /openapi.yaml",
  async (services, role) => {
    const dir = await newDir();
    const { id } = await createTenant(database);
    const key = await createApiKey(database, { role, ...(role !== "OPERATOR" && { tenantId: id }) });
    const config = join(dir, "schemathesis.toml");
    await writeFile(config, CONFIG);
    const args = [
      ...["--config-file", config],
      ...["run", `http://127.0.0.1:${server.httpPort}/openapi.yaml`],
      ...["--header", `Authorization: Bearer ${key}`, "--include-path-regex", `v1\\.(${services})/`],
      ...["--checks", CHECKS.join(","), "--phases", "examples,coverage,fuzzing", "--max-examples", "50"],
      ...["--generation-deterministic", "--request-timeout", REQUEST_TIMEOUT_S],
      ...["--continue-on-failure", "--warnings", "off", "--no-color"],
    ];
    const failed = (error: { code: number; stdout: string }) => error;
    const result = await run("schemathesis", args, { cwd: dir, timeout: TIMEOUT_MS }).then(
      ({ stdout }) => ({ code: 0, stdout }),
      failed,
    );
    expect(result.code, result.stdout).toBe(0);
  },
  TIMEOUT_MS,
);
