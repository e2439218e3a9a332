import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { connectClient } from "../support/calls/clients.ts";
import { complete } from "../support/calls/verbs.ts";
import { createTestDatabase } from "../support/database/database.ts";
import { describeWithPrograms, runProgramWith } from "../support/deploy/programs.ts";
import { createWorkplace, runCommand } from "../support/processes/command.ts";
import { settingsFor } from "../support/processes/serve.ts";
import { startTestServer } from "../support/servers/server.ts";
import { createTenant } from "../support/servers/tenants.ts";

const FILE = fileURLToPath(new URL("../../deploy/postgres/service-role.sql", import.meta.url));

describeWithPrograms(["psql"], "an owner as managed services give it, who is not a superuser", () => {
  test("migrates, creates the replicas' role, and the service serves", async () => {
    const database = await createTestDatabase("template0");
    const suffix = randomBytes(4).toString("hex");
    const [owner, service] = [`owner_${suffix}`, `service_${suffix}`];
    try {
      await database.query(`create role ${owner} login createrole createdb`);
      await database.query(`alter database ${new URL(database.url).pathname.slice(1)} owner to ${owner}`);
      const workplace = await createWorkplace();
      const ownerUrl = withUser(database.url, owner);
      expect(await runCommand(["migrate"], workplace, settingsFor(ownerUrl))).toMatchObject({ exit: 0 });
      const file = join(workplace.dir, "service-role.sql");
      await writeFile(file, (await readFile(FILE, "utf8")).replaceAll("onceward_service", service));
      const args = [
        "--no-psqlrc",
        "--quiet",
        "--set",
        "ON_ERROR_STOP=1",
        "--set",
        "password=x",
        "--file",
        file,
      ];
      for (const run of ["first", "second"]) {
        expect(await runProgramWith({}, "psql", ...args, ownerUrl), run).toEqual({ exit: 0, output: "" });
      }
      const doctor = await runCommand(["doctor"], workplace, settingsFor(withUser(database.url, service)));
      expect(doctor.stdout).toMatch(/^ok .*privileges/m);
      const server = await startTestServer(withUser(database.url, service));
      try {
        await complete(connectClient(server, (await createTenant(database)).apiKey));
      } finally {
        await server.stop();
      }
    } finally {
      await database.drop();
    }
  });
});

function withUser(address: string, user: string): string {
  const url = new URL(address);
  url.username = user;
  return url.href;
}
