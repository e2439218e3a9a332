import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeEach, expect, test } from "vitest";
import { formatApiKey, generateApiKey } from "../../server/src/access/api-key.ts";
import { ConfigError, readConfig, redactedConfig, withCurrentUrls } from "../../server/src/config/config.ts";
import { createWorkplace, runCommand, type Workplace } from "../support/processes/command.ts";

const run = promisify(execFile);

const URL_TEXT = "postgresql://someone:hidden@db:5432/onceward";
const PEPPER = "hidden pepper, 0123456789 0123456789";
const GIVEN = { DATABASE_URL: URL_TEXT, ONCEWARD_API_KEY_PEPPER: PEPPER };

let workplace: Workplace;
beforeEach(async () => {
  workplace = await createWorkplace();
});

async function fileWith(contents: string | Buffer): Promise<string> {
  const file = join(workplace.dir, `secret-${crypto.randomUUID()}`);
  await writeFile(file, contents);
  return file;
}

/** Returns the problems that the configuration reports, without indentation. */
function problemsOf(env: Readonly<Record<string, string>>): readonly string[] {
  try {
    readConfig(env);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.message.split("\n  - ").slice(1);
  }
}

test("every secret can be read from a file, without the newlines at its end", async () => {
  const values = {
    DATABASE_URL: URL_TEXT,
    DATABASE_DIRECT_URL: "postgresql://owner:hidden@db:5432/onceward",
    REDIS_URL: "redis://:hidden@redis:6379",
    ONCEWARD_API_KEY_PEPPER: PEPPER,
    ONCEWARD_OPERATOR_KEY: formatApiKey(generateApiKey()),
  };
  for (const newline of ["", "\n", "\r\n", "\n\n"]) {
    const files = Object.entries(values).map(async ([name, text]) => {
      return [`${name}_FILE`, await fileWith(text + newline)] as const;
    });
    const config = readConfig(Object.fromEntries(await Promise.all(files)));
    expect(config).toMatchObject(values);
    expect(JSON.stringify(redactedConfig(config))).not.toContain("hidden");
  }
});

test("a secret that is given by both of its variables is refused", async () => {
  const file = await fileWith(PEPPER);
  expect(problemsOf({ ...GIVEN, ONCEWARD_API_KEY_PEPPER_FILE: file })).toEqual([
    "ONCEWARD_API_KEY_PEPPER and ONCEWARD_API_KEY_PEPPER_FILE are both set: set one of them",
  ]);
  // An empty variable counts as unset.
  expect(problemsOf({ ...GIVEN, ONCEWARD_API_KEY_PEPPER: "", ONCEWARD_API_KEY_PEPPER_FILE: file })).toEqual(
    [],
  );
  expect(problemsOf({ ...GIVEN, ONCEWARD_API_KEY_PEPPER_FILE: "" })).toEqual([]);
});

test("a file that cannot be used is reported once, with its variable and its path", async () => {
  const missing = join(workplace.dir, "missing");
  const pipe = join(workplace.dir, "pipe");
  await run("mkfifo", [pipe]);
  const directory = join(workplace.dir, "directory");
  await mkdir(directory);
  const [empty, newline, large, binary] = [
    await fileWith(""),
    await fileWith("\n"),
    await fileWith("x".repeat(16_385)),
    await fileWith(Buffer.from([120, 0, 121])),
  ];
  const cases = [
    [missing, "cannot be read (ENOENT)"],
    [pipe, "is not a regular file"],
    [directory, "is not a regular file"],
    ["/dev/zero", "is not a regular file"],
    [empty, "is empty"],
    [newline, "is empty"],
    [large, "is larger than 16384 bytes"],
    [binary, "contains a zero byte: it must be text"],
  ] as const;
  for (const [path, problem] of cases) {
    expect(problemsOf({ DATABASE_URL: URL_TEXT, ONCEWARD_API_KEY_PEPPER_FILE: path })).toEqual([
      `ONCEWARD_API_KEY_PEPPER_FILE: ${path} ${problem}`,
    ]);
  }
  const largest = await fileWith("x".repeat(16_384));
  expect(problemsOf({ DATABASE_URL: URL_TEXT, ONCEWARD_API_KEY_PEPPER_FILE: largest })).toEqual([]);
});

test("an error about a secret's file never prints its contents", async () => {
  const file = await fileWith("hidden");
  const problems = problemsOf({ DATABASE_URL_FILE: file, ONCEWARD_API_KEY_PEPPER_FILE: file });
  expect(problems).toEqual([
    "the contents of DATABASE_URL_FILE must be a URL such as postgresql://user:password@host:5432/database",
    "the contents of ONCEWARD_API_KEY_PEPPER_FILE must be text of at least 32 characters",
  ]);
});

test("only secrets are read from files", async () => {
  const file = await fileWith("0.0.0.0");
  expect(problemsOf({ ...GIVEN, ONCEWARD_HOST_FILE: file })).toEqual(["ONCEWARD_HOST_FILE is not known"]);
});

test("onceward-server reads the files, and ends with the problem if it cannot", async () => {
  const pepper = await fileWith(`${PEPPER}\n`);
  const env = { DATABASE_URL_FILE: join(workplace.dir, "none"), ONCEWARD_API_KEY_PEPPER_FILE: pepper };
  const { exit, stderr } = await runCommand(["migrate"], workplace, env);
  expect({ exit, stderr }).toEqual({
    exit: 1,
    stderr: expect.stringContaining(`DATABASE_URL_FILE: ${env.DATABASE_URL_FILE} cannot be read (ENOENT)`),
  });
  expect(stderr).not.toContain("PEPPER");
});

test("database URLs are read again from files; an unusable file leaves the first value", async () => {
  const file = await fileWith(URL_TEXT);
  const config = readConfig({ DATABASE_URL_FILE: file, ONCEWARD_API_KEY_PEPPER: PEPPER });
  expect(withCurrentUrls(config)).toEqual(config);
  const changed = "postgresql://another:hidden@db:5432/onceward";
  await writeFile(file, `${changed}\n`);
  expect(withCurrentUrls(config)).toEqual({ ...config, DATABASE_URL: changed });
  for (const contents of ["", "db.example.com", "x".repeat(16_385)]) {
    await writeFile(file, contents);
    expect(withCurrentUrls(config)).toEqual(config);
  }
});
