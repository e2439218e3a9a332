import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { fromBinary, toJson } from "@bufbuild/protobuf";
import {
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { beforeAll, expect, test } from "vitest";

// `npm run generate` does not write these messages, because it needs neither Go nor Python. Neither do these tests: they read the
// descriptors in the generated files. After a change of proto/: `npx buf generate` in clients/go, and clients/python/generate.py.

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const NAMES = ["errors", "facts", "idempotency", "policy", "record"];

let files: readonly FileDescriptorProto[];

beforeAll(async () => {
  const args = ["build", `${ROOT}proto`, "--as-file-descriptor-set", "--exclude-imports", "-o", "-"];
  const { stdout } = await run(`${ROOT}node_modules/.bin/buf`, args, { encoding: "buffer" });
  files = fromBinary(FileDescriptorSetSchema, stdout).file;
});

function fileOf(name: string): FileDescriptorProto {
  const found = files.find((file) => file.name === `onceward/v1/${name}.proto`);
  if (found === undefined) throw new Error(`there is no ${name}.proto`);
  return found;
}

test.each(NAMES)("the Go client's messages are those of %s.proto, with its comments", async (name) => {
  const text = await readFile(`${ROOT}clients/go/onceward/v1/${name}.pb.go`, "utf8");
  const [, literals = ""] = /_rawDesc = "" \+\n((?:\t"[^\n]*\n)*)/.exec(text) ?? [];
  const literal = [...literals.matchAll(/^\t"(.*)"/gm)].map((match) => match[1]).join("");
  expect(essenceOf(bytesOf(literal))).toEqual(essenceOf(fileOf(name)));

  const stub = await readFile(`${ROOT}clients/go/onceward/v1/idempotency_grpc.pb.go`, "utf8");
  const lines = new Set((text + stub).split("\n").map(wordsOf));
  const comments = fileOf(name).sourceCodeInfo?.location.flatMap(({ leadingComments, path }) =>
    path.length > 1 ? leadingComments.split("\n").map(wordsOf) : [],
  );
  expect(comments?.filter((line) => !lines.has(line))).toEqual([]);
});

test.each(NAMES)("the Python client's messages are those of %s.proto", async (name) => {
  const text = await readFile(`${ROOT}clients/python/src/onceward/v1/${name}_pb2.py`, "utf8");
  const [, literal = ""] = /AddSerializedFile\(b'(.*)'\)/.exec(text) ?? [];
  expect(essenceOf(bytesOf(literal))).toEqual(essenceOf(fileOf(name)));
});

const ESCAPES: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};

/** Returns the words of a comment's line: gofmt indents lists. */
function wordsOf(line: string): string {
  return line
    .replace(/^\s*\/\//, "")
    .replaceAll(/\s+/g, " ")
    .trim();
}

/** Returns the bytes of a literal in Go or Python. */
function bytesOf(literal: string): Uint8Array {
  const parts = [...literal.matchAll(/\\x([0-9a-f]{2})|\\u([0-9a-f]{4})|\\(.)|[^\\]+/gs)].map((match) => {
    const [text, byte, unit, escaped] = match;
    if (byte !== undefined) return Buffer.from(byte, "hex");
    if (unit !== undefined) return Buffer.from(String.fromCharCode(Number.parseInt(unit, 16)));
    return Buffer.from(escaped === undefined ? text : (ESCAPES[escaped] ?? escaped));
  });
  return Buffer.concat(parts);
}

/** The messages, enums and services of a descriptor, as JSON: its options are those of the tool that wrote it. */
function essenceOf(descriptor: FileDescriptorProto | Uint8Array): unknown {
  const file =
    descriptor instanceof Uint8Array ? fromBinary(FileDescriptorProtoSchema, descriptor) : descriptor;
  const { messageType, enumType, service } = toJson(FileDescriptorProtoSchema, file);
  const text = JSON.stringify({ messageType, enumType, service }, (name, value) =>
    name === "jsonName" ? undefined : value,
  );
  return JSON.parse(text);
}
