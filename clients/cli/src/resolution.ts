import { readFile } from "node:fs/promises";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Result_Kind, type ResultSchema } from "@onceward/client";
import {
  type ResolveRecordRequest,
  ResolveRecordRequest_CompleteSchema,
  ResolveRecordRequest_ForgetSchema,
  ResolveRecordRequest_ReleaseSchema,
} from "@onceward/client/admin";
import { UsageError } from "./failure.ts";

/** How a record is resolved; exactly one is given. */
export interface ResolutionOptions {
  readonly forget?: true;
  readonly release?: true;
  readonly complete?: string;
  readonly failure?: string;
}

const JSON_CONTENT_TYPE = "application/json";

/** What a ResolveRecordRequest says of it. */
export type Resolution =
  | { readonly case: "forget" | "release" }
  | { readonly case: "complete"; readonly result: MessageInitShape<typeof ResultSchema> };

/** @throws UsageError unless exactly one is given, and it is JSON where JSON is needed. */
export async function readResolution(options: ResolutionOptions): Promise<Resolution> {
  const { forget, release, complete, failure } = options;
  const given = [forget, release, complete, failure].filter((option) => option !== undefined);
  if (given.length !== 1) throw new UsageError("Give one of --release, --complete, --failure and --forget.");
  if (forget) return { case: "forget" };
  if (release) return { case: "release" };
  const kind = failure === undefined ? Result_Kind.SUCCESS : Result_Kind.FAILURE;
  const payload = await readJson(complete ?? failure ?? "");
  return { case: "complete", result: { kind, payload, contentType: JSON_CONTENT_TYPE } };
}

/** The same as the request has it. */
export function resolutionMessage(resolution: Resolution): ResolveRecordRequest["resolution"] {
  switch (resolution.case) {
    case "forget":
      return { case: "forget", value: create(ResolveRecordRequest_ForgetSchema) };
    case "release":
      return { case: "release", value: create(ResolveRecordRequest_ReleaseSchema) };
    case "complete":
      return { case: "complete", value: create(ResolveRecordRequest_CompleteSchema, resolution) };
  }
}

/** The bytes of a JSON text, as they are: results are replayed byte for byte. */
async function readJson(argument: string): Promise<Uint8Array> {
  const text = argument.startsWith("@") ? await readText(argument.slice(1)) : argument;
  try {
    JSON.parse(text);
  } catch {
    throw new UsageError("A result must be JSON, or @ and the name of a file that is.");
  }
  return new TextEncoder().encode(text);
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new UsageError(`${file} can't be read: ${(error as NodeJS.ErrnoException).code}.`);
  }
}
