import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";

const run = promisify(execFile);
const BUF = fileURLToPath(new URL("../../node_modules/.bin/buf", import.meta.url));
const PROTO = fileURLToPath(new URL("../../proto", import.meta.url));

// Programs in other languages import generated code by these names. buf does not compare them (buf.yaml).
test("the names of generated code in Java, Go and C# do not change", async () => {
  const args = ["build", PROTO, "--as-file-descriptor-set", "--exclude-imports", "-o", "-"];
  const { stdout } = await run(BUF, args, { encoding: "buffer" });
  const { file: files } = fromBinary(FileDescriptorSetSchema, stdout);
  const outerClasses = files.map(({ name, options }) => {
    expect(options, name).toMatchObject({
      csharpNamespace: "Onceward.V1",
      goPackage: "onceward/v1;oncewardv1",
      javaMultipleFiles: true,
      javaPackage: "com.onceward.v1",
    });
    return options?.javaOuterClassname;
  });
  expect(outerClasses.sort()).toEqual([
    "ErrorsProto",
    "FactsProto",
    "IdempotencyProto",
    "IdentityProto",
    "OperatorProto",
    "PolicyProto",
    "RecordProto",
    "TenantAdminProto",
    "TenantProto",
  ]);
});
