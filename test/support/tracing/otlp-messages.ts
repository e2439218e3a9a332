import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

/** A span as OTLP carries it. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for a root span. */
  readonly parentSpanId: string;
  readonly name: string;
  /** 2: server, 3: client. */
  readonly kind: number;
  readonly attributes: Attributes;
  readonly events: readonly { readonly name: string; readonly attributes: Attributes }[];
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  /** 2: error. */
  readonly statusCode: number;
  /** The attributes of the process that made the span. */
  readonly resource: Attributes;
}

export type Attributes = Readonly<Record<string, string | number | boolean>>;

/** A message's fields by number, each with its values in order: bytes, or numbers. */
export type Fields = ReadonlyMap<number, readonly (Uint8Array | number)[]>;

/**
 * Reads the spans of an ExportTraceServiceRequest:
 * https://github.com/open-telemetry/opentelemetry-proto/blob/main/opentelemetry/proto/trace/v1/trace.proto.
 */
export function readSpans(request: Uint8Array): readonly ReceivedSpan[] {
  return messages(fieldsOf(request), 1).flatMap((resourceSpans) => {
    const resource = attributes(messages(resourceSpans, 1)[0] ?? new Map(), 1);
    const scopes = messages(resourceSpans, 2);
    return scopes.flatMap((scope) => messages(scope, 2).map((span) => readSpan(span, resource)));
  });
}

function readSpan(span: Fields, resource: Attributes): ReceivedSpan {
  return {
    traceId: hex(span, 1),
    spanId: hex(span, 2),
    parentSpanId: hex(span, 4),
    name: text(span, 5),
    kind: number(span, 6),
    attributes: attributes(span, 9),
    events: messages(span, 11).map((event) => ({ name: text(event, 2), attributes: attributes(event, 3) })),
    links: messages(span, 13).map((link) => ({ traceId: hex(link, 1), spanId: hex(link, 2) })),
    statusCode: number(messages(span, 15)[0] ?? new Map(), 3),
    resource,
  };
}

export function attributes(fields: Fields, field: number): Attributes {
  return Object.fromEntries(
    messages(fields, field).map((pair) => {
      const value = messages(pair, 2)[0] ?? new Map();
      if (value.has(1)) return [text(pair, 1), text(value, 1)];
      return [text(pair, 1), value.has(2) ? number(value, 2) === 1 : number(value, 3)];
    }),
  );
}

export function fieldsOf(bytes: Uint8Array): Fields {
  const fields = new Map<number, (Uint8Array | number)[]>();
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    const values = fields.get(field) ?? [];
    fields.set(field, values);
    if (wireType === WireType.LengthDelimited) values.push(reader.bytes());
    else if (wireType === WireType.Varint) values.push(Number(reader.int64()));
    else if (wireType === WireType.Bit64) values.push(reader.double());
    else reader.skip(wireType, field);
  }
  return fields;
}

export function messages(fields: Fields, field: number): readonly Fields[] {
  return (fields.get(field) ?? []).map((value) => fieldsOf(value as Uint8Array));
}

export function bytes(fields: Fields, field: number): Buffer {
  return Buffer.from((fields.get(field)?.[0] ?? new Uint8Array()) as Uint8Array);
}

function hex(fields: Fields, field: number): string {
  return bytes(fields, field).toString("hex");
}

export function text(fields: Fields, field: number): string {
  return bytes(fields, field).toString();
}

function number(fields: Fields, field: number): number {
  return Number(fields.get(field)?.[0] ?? 0);
}
