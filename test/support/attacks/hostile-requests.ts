import type { DescField, DescMessage } from "@bufbuild/protobuf";
import {
  bytes,
  type Encoded,
  encode,
  message,
  setField,
  text,
  varint,
  type WireField,
} from "./wire-values.ts";

/** The path of a field in a request, from the request's own field down. */
export type FieldPath = readonly DescField[];

/** Returns the path as refusals write it, such as "result.kind". */
export function nameOf(path: FieldPath): string {
  return path.map(({ name }) => name).join(".");
}

/** Returns every field of a request and of its nested messages. */
export function fieldPaths(desc: DescMessage, above: FieldPath = []): readonly FieldPath[] {
  return desc.fields.flatMap((field) => {
    const path = [...above, field];
    return [path, ...(isOurs(field.message) ? fieldPaths(field.message, path) : [])];
  });
}

/**
 * Returns whether a message is ours: its fields are attacked one by one. Google's are single values, such as
 * a time.
 */
function isOurs(desc: DescMessage | undefined): desc is DescMessage {
  return desc?.typeName.startsWith("onceward.") === true;
}

/** The subject of a valid request. */
interface Subject {
  readonly tenant: string;
  /** Whether an API key in the request is for an operator, as its RPC requires. */
  readonly isOperators?: boolean;
}

/** Returns a valid value by the field's name, so that it fits a new RPC's request, too; undefined: unset. */
function sensibleValue({ name, message, parent }: DescField, { tenant, isOperators = false }: Subject) {
  // A list takes a key, or other fields that select records.
  const isOfList = parent.name === "ListRecordsRequest";
  switch (name) {
    case "namespace":
      return message === undefined ? text("charges") : undefined;
    case "namespaces":
      // An API key without any is for all namespaces.
      return parent.name === "ListRetentionAdviceRequest" ? text("charges") : undefined;
    case "key":
      return isOfList ? undefined : text("k1");
    case "name":
    case "tenant":
      return message === undefined ? text(tenant) : undefined;
    case "reason":
      return text("a reason");
    case "fingerprint":
      return isOfList ? undefined : bytes(new Uint8Array(32));
    case "expected_count":
    case "fencing_token":
    case "kind":
      return varint(1n);
    case "role":
      return isOperators ? undefined : varint(1n);
    case "allow_missing":
      return varint(1n, "true");
    default:
      return undefined;
  }
}

const SENSIBLE_MESSAGES = new Set(["namespace", "tenant", "result", "api_key", "items", "checkpoint"]);

/** A field and the value that replaces its valid one; undefined: the field is missing. */
export interface Change {
  readonly path: FieldPath;
  readonly set: WireField | undefined;
}

/** Returns a valid request with some changes; no change may be inside a value that another one replaces. */
export function requestWith(desc: DescMessage, subject: Subject, changes: readonly Change[]): Encoded {
  const isOperators = desc.name === "CreateOperatorApiKeyRequest";
  return encode(fieldsWith(desc, { tenant: subject.tenant, isOperators }, changes, 0));
}

function fieldsWith(
  desc: DescMessage,
  subject: Subject,
  changes: readonly Change[],
  depth: number,
): WireField[] {
  return desc.fields.flatMap((field) => {
    const concerned = changes.filter(({ path }) => path[depth] === field);
    const change = concerned.find(({ path }) => path.length === depth + 1);
    if (change !== undefined) return change.set === undefined ? [] : [change.set];
    if (isOurs(field.message) && isWanted(field, concerned, changes, depth)) {
      return [setField(field, message(fieldsWith(field.message, subject, concerned, depth + 1)))];
    }
    const value = sensibleValue(field, subject);
    return value === undefined ? [] : [setField(field, value)];
  });
}

/**
 * Returns whether a valid request sets a field. Of a `oneof`, it sets the changed field, or else the last
 * one.
 */
function isWanted(
  field: DescField,
  concerned: readonly Change[],
  changes: readonly Change[],
  depth: number,
): boolean {
  if (concerned.length > 0) return true;
  const { oneof } = field;
  if (oneof === undefined) return SENSIBLE_MESSAGES.has(field.name);
  const isChanged = changes.some(({ path }) => path[depth]?.oneof === oneof);
  return !isChanged && oneof.fields.at(-1) === field;
}

/** Returns the changes that fit into one request together; of two that conflict, the first. */
export function apart<Changed extends Pick<Change, "path">>(changes: readonly Changed[]): readonly Changed[] {
  return changes.filter(({ path }, at) =>
    changes.slice(0, at).every((earlier) => areApart(path, earlier.path)),
  );
}

function areApart(a: FieldPath, b: FieldPath): boolean {
  const at = a.findIndex((field, depth) => field !== b[depth]);
  if (at < 0 || at >= b.length) return false;
  const [mine, theirs] = [a[at], b[at]];
  return mine?.oneof === undefined || mine.oneof !== theirs?.oneof;
}
