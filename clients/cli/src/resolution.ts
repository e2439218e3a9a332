import { createReadStream } from "node:fs";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type ResolveRecordRequest,
  ResolveRecordRequest_CompleteSchema,
  ResolveRecordRequest_ForgetSchema,
  ResolveRecordRequest_ReleaseSchema,
} from "@onceward/client/admin";
import { Result_Kind, type ResultSchema } from "@onceward/client/proto";
import { readText } from "./bounded-text.ts";
import { UsageError } from "./failure.ts";

/** The options that resolve a record, of which exactly one must be given. */
export interface ResolutionOptions {
  readonly forget?: true;
  readonly release?: true;
  readonly complete?: string;
  readonly failure?: string;
}

/** The largest result that a policy can allow. */
const MAX_RESULT_BYTES = 1024 * 1024;
const JSON_CONTENT_TYPE = "application/json";

/** A resolution of a ResolveRecordRequest. */
export type Resolution =
  | { readonly case: "forget" | "release" }
  | { readonly case: "complete"; readonly result: MessageInitShape<typeof ResultSchema> };

/**
 * Reads the resolution from the options. @throws UsageError unless exactly one is given, with valid JSON where
 * needed.
 */
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

/** Returns a resolution as the request's field. */
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

/** Returns a JSON text's bytes unchanged: results are replayed byte for byte. An empty text is an empty result. */
async function readJson(argument: string): Promise<Uint8Array> {
  const text = argument.startsWith("@") ? await readFileOf(argument.slice(1)) : argument;
  if (text === "") return new Uint8Array();
  try {
    JSON.parse(text);
  } catch {
    throw new UsageError("A result must be JSON, or @ and the name of a file that is.");
  }
  return new TextEncoder().encode(text);
}

async function readFileOf(file: string): Promise<string> {
  return await readText(file, createReadStream(file), MAX_RESULT_BYTES).catch((error) => {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${file} can't be read: ${error.code}.`);
  });
}
