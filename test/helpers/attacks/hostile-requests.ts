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

/** As refusals name it, from the request on: "result.kind". */
export function nameOf(path: FieldPath): string {
  return path.map(({ name }) => name).join(".");
}

/** Every field of a request, and of the messages in it. */
export function fieldPaths(desc: DescMessage, above: FieldPath = []): readonly FieldPath[] {
  return desc.fields.flatMap((field) => {
    const path = [...above, field];
    return [path, ...(isOurs(field.message) ? fieldPaths(field.message, path) : [])];
  });
}

/** Google's messages are values, such as a time; ours have fields to look at. */
function isOurs(desc: DescMessage | undefined): desc is DescMessage {
  return desc?.typeName.startsWith("onceward.") === true;
}

/** Whom a sensible request is about. */
export interface Subject {
  readonly tenant: string;
  /** Whether an API key in it is an operator's, whose role is that of its RPC. */
  readonly isOperators?: boolean;
}

/** By the field's name, so that a new request gets somewhere too. What isn't here is left unset. */
function sensibleValue({ name, message }: DescField, { tenant, isOperators = false }: Subject) {
  switch (name) {
    case "namespace":
      return message === undefined ? text("charges") : undefined;
    case "key":
      return text("k1");
    case "name":
    case "tenant":
      return message === undefined ? text(tenant) : undefined;
    case "reason":
      return text("a reason");
    case "fingerprint":
      return bytes(new Uint8Array(32));
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

/** A field that a request sets otherwise than it sensibly would; undefined: it is left out. */
export interface Change {
  readonly path: FieldPath;
  readonly set: WireField | undefined;
}

/** A sensible request with some changes; none of them may be in what another one replaces. */
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

/** Of alternatives, the one that a change is in, or else the last one: one takes a result. */
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

/** Of some changes, those that can be made to one request: of two that can't, the first. */
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
