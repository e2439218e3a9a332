import { createReadStream } from "node:fs";
import { create, getOption, type MessageInitShape } from "@bufbuild/protobuf";
import {
  fieldFacts,
  type ResolveRecordRequest,
  ResolveRecordRequest_CompleteSchema,
  ResolveRecordRequest_ForgetSchema,
  ResolveRecordRequest_ReleaseSchema,
  Result_Kind,
  ResultSchema,
} from "@onceward/client/proto";
import { type Command, InvalidArgumentError } from "commander";
import { readText } from "./bounded-text.ts";
import { UsageError } from "./failure.ts";

/** The options that resolve a record, of which exactly one must be given. */
export interface ResolutionOptions {
  readonly forget?: true;
  readonly release?: true;
  readonly complete?: string;
  readonly failure?: string;
  /** Only with `complete`. */
  readonly httpStatus?: number;
}

/** The largest result that a policy can allow. */
const MAX_RESULT_BYTES = Number(getOption(ResultSchema.field.payload, fieldFacts).max);
const JSON_CONTENT_TYPE = "application/json";
/** The entry of a result's metadata from which guards of HTTP endpoints replay the status; without it, duplicates get 410. */
const HTTP_STATUS = "http-status";

/** Adds the options of a resolution to a command. */
export function withResolution(command: Command): Command {
  return command
    .option("--release", "the effect did not happen: the next claim gets the key")
    .option(
      "--complete <json>",
      "the effect happened, and this is its result, or empty; @FILE reads it from a file",
    )
    .option(
      "--http-status <status>",
      "with --complete of an HTTP endpoint's record: duplicates get the result with this status, such as 201; without it 410",
      parseHttpStatus,
    )
    .option(
      "--failure <json>",
      'the operation failed permanently, with this error, such as {"message":"card declined"}',
    )
    .option("--forget", "remove the record, as if the key had never been claimed");
}

/** A resolution of a ResolveRecordRequest. */
export type Resolution =
  | { readonly case: "forget" | "release" }
  | { readonly case: "complete"; readonly result: MessageInitShape<typeof ResultSchema> };

/**
 * Reads the resolution from the options. @throws UsageError unless exactly one is given, with valid JSON where
 * needed.
 */
export async function readResolution(options: ResolutionOptions): Promise<Resolution> {
  const { forget, release, complete, failure, httpStatus } = options;
  const given = [forget, release, complete, failure].filter((option) => option !== undefined);
  if (given.length !== 1) throw new UsageError("Give one of --release, --complete, --failure and --forget.");
  if (httpStatus !== undefined && complete === undefined)
    throw new UsageError("--http-status needs --complete.");
  if (forget) return { case: "forget" };
  if (release) return { case: "release" };
  const kind = failure === undefined ? Result_Kind.SUCCESS : Result_Kind.FAILURE;
  const payload = await readJson(complete ?? failure ?? "");
  const metadata = httpStatus === undefined ? {} : { [HTTP_STATUS]: String(httpStatus) };
  return { case: "complete", result: { kind, payload, contentType: JSON_CONTENT_TYPE, metadata } };
}

/** Parses the status of a response that ends a request. @throws InvalidArgumentError. */
export function parseHttpStatus(text: string): number {
  if (/^[2-5]\d\d$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be a status of HTTP, 200-599.");
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
