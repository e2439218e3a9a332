import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { useOwnPostgres } from "../support/database/own-postgres.ts";
import { findPostgresTools } from "../support/database/postgres-tools.ts";
import { createWorkplace } from "../support/processes/command.ts";
import { followSteps } from "../support/processes/follow-readme.ts";
import { codeBlocks } from "../support/processes/readme.ts";
import { freePort } from "../support/redis/redis.ts";
import { TEST_PEPPER } from "../support/servers/server.ts";

const PAGE = "deploy/README.md";
const ROOT = fileURLToPath(new URL("../../", import.meta.url));

const tools = await findPostgresTools();
if (tools === undefined)
  process.stderr.write("The commands for systemd are not typed: install postgresql-15 for its psql.\n");

const postgres = useOwnPostgres({});

/** Does what systemd does with the page's unit for "restart onceward"; there is no systemd in a container. */
const SYSTEMCTL = `
valueOf() { sed -n "s/^$1=//p" etc/systemd/system/onceward.service; }
stop() { if [ -f pid ]; then kill "$(cat pid)"; while kill -0 "$(cat pid)" 2> /dev/null; do sleep 0.05; done; fi; }
systemctl() {
  [ "$*" = "restart onceward" ] || return 1
  (cd "$OLDDIR"; stop; set -a; . "$(valueOf EnvironmentFile)"; exec=$(valueOf ExecStart); cd "$(valueOf WorkingDirectory)"
   exec timeout 100 $exec > "$OLDDIR/log" 2>&1 < /dev/null & echo $! > "$OLDDIR/pid")
}`;

test.runIf(tools !== undefined)(
  "the page's files and commands for systemd install a replica, and replace it",
  { timeout: 120_000 },
  async () => {
    const workplace = await createWorkplace();
    const { dir } = workplace;
    const [owner, port] = [await postgres.createDatabase(), await freePort()];
    const service = new URL(owner);
    [service.username, service.password] = ["onceward_service", "SERVICE_PASSWORD"];
    const here = (text: string) =>
      Object.entries({
        "postgresql://onceward_service:SERVICE_PASSWORD@db1:5432/onceward": service.href,
        "postgresql://onceward:OWNER_PASSWORD@db1:5432/onceward": owner,
        "'PEPPER'": `'${TEST_PEPPER}'`,
        "0.0.0.0": "127.0.0.1",
        "127.0.0.1:9090": `127.0.0.1:${port}`,
        "/opt/onceward": join(dir, "opt"),
        "/etc/onceward": join(dir, "etc/onceward"),
      }).reduce((changed, [from, to]) => changed.replaceAll(from, to), text);

    const [settings = "", ownersSettings = "", unit = ""] = await blocksOf("ini");
    const ports = `ONCEWARD_MANAGEMENT_PORT=${port}\nONCEWARD_GRPC_PORT=0\nONCEWARD_HTTP_PORT=0\n`;
    await mkdir(join(dir, "etc/systemd/system"), { recursive: true });
    await mkdir(join(dir, "opt"));
    await symlink(ROOT, join(dir, "opt/VERSION"));
    await writeFile(join(dir, "etc/onceward.env"), here(settings) + ports);
    await writeFile(join(dir, "etc/onceward-owner.env"), here(ownersSettings));
    await writeFile(join(dir, "etc/systemd/system/onceward.service"), here(unit));

    const [migration = "", replacement = ""] = (await blocksOf("bash")).map(here);
    const commands = [
      `OLDDIR='${dir}' PATH='${tools}':$PATH ${SYSTEMCTL}`,
      ...migration.trim().split("\n"),
      ...replacement.trim().split("\n"),
      `first=$(cat '${dir}/pid')`,
      ...replacement.trim().split("\n"),
      `[ "$first" != "$(cat '${dir}/pid')" ] && cd '${dir}' && stop && tail -1 log`,
    ];
    const followed = await followSteps(workplace, commands);
    expect(followed.map(({ exit, output }, index) => [commands[index], exit, output])).toEqual(
      followed.map(({ output }, index) => [commands[index], 0, output]),
    );
    expect(followed.at(-1)?.output).toContain('"msg":"stopped"');
  },
);

/** Returns the blocks of a language in the page's section about systemd. */
async function blocksOf(language: string): Promise<readonly string[]> {
  const blocks = await codeBlocks(PAGE, language);
  return blocks.filter((block) => /onceward(\.env|-owner|:OWNER|_service:)|\/opt\/onceward/.test(block));
}
