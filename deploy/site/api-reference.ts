import type { DescEnum, DescField, DescMessage, DescService, FileRegistry } from "@bufbuild/protobuf";
import { commentOf } from "./comments.ts";
import { limitText } from "./field-limits.ts";
import { readProtoFiles } from "./proto-files.ts";

/**
 * Returns the reference of all services, messages and enumerations of `proto/` as Markdown, in the order of the files.
 *
 * @param buf The path of the program `buf`.
 * @param proto The folder of the proto files.
 */
export function apiReference(buf: string, proto: string): string {
  const registry = readProtoFiles(buf, proto);
  const files = [...registry.files].filter(({ proto: { package: name } }) => name === "onceward.v1");
  return [
    "# API",
    "All calls, over gRPC, gRPC-Web, Connect and JSON. Written from the comments of the proto files.",
    ...files.flatMap(({ services }) => services.map(serviceSection)),
    "## Messages",
    ...files.flatMap(({ messages }) =>
      messages.flatMap(withNested).map((message) => messageSection(registry, message)),
    ),
    "## Enumerations",
    ...files.flatMap(({ enums, messages }) =>
      [...enums, ...messages.flatMap((message) => message.nestedEnums)].map(enumSection),
    ),
    "",
  ].join("\n\n");
}

function serviceSection(service: DescService): string {
  const calls = service.methods.map(
    (method) =>
      `### ${method.name}\n\n(${typeLink(method.input)}) → ${typeLink(method.output)}${
        method.methodKind === "unary" ? "" : ", as a stream"
      }\n\n${textOf(method)}`,
  );
  return [`## ${service.name}`, textOf(service), ...calls].join("\n\n");
}

function withNested(message: DescMessage): readonly DescMessage[] {
  return [message, ...message.nestedMessages.filter(({ proto }) => !proto.options?.mapEntry)];
}

function messageSection(registry: FileRegistry, message: DescMessage): string {
  const rows = message.fields.map((field) => {
    const text = [textOf(field), limitText(registry, field)].join(" ").trim();
    return `| \`${field.name}\` | ${typeOf(field)} | ${cell(text)} |`;
  });
  const table =
    rows.length === 0
      ? "It has no fields."
      : ["| field | type | meaning |", "|---|---|---|", ...rows].join("\n");
  return [`### ${nameOf(message)}`, textOf(message), table].filter((part) => part !== "").join("\n\n");
}

function enumSection(enumeration: DescEnum): string {
  const rows = enumeration.values.map((value) => `| \`${value.name}\` | ${cell(textOf(value))} |`);
  return [
    `### ${nameOf(enumeration)}`,
    textOf(enumeration),
    ["| value | meaning |", "|---|---|", ...rows].join("\n"),
  ].join("\n\n");
}

/** Returns an element's comment; `<` would begin an HTML element. */
function textOf(desc: Parameters<typeof commentOf>[0]): string {
  return commentOf(desc).replaceAll("<", "&lt;");
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll(/\n+/g, " ");
}

function nameOf({ typeName, file }: DescMessage | DescEnum): string {
  return typeName.slice(file.proto.package.length + 1);
}

function typeOf(field: DescField): string {
  switch (field.fieldKind) {
    case "message":
      return typeLink(field.message);
    case "enum":
      return typeLink(field.enum);
    case "list":
      return `list of ${elementOf(field)}`;
    case "map":
      return `map from string to ${elementOf(field)}`;
    case "scalar":
      return scalarName(field.proto.type);
  }
}

function elementOf(field: DescField & { fieldKind: "list" | "map" }): string {
  if (field.message !== undefined) return typeLink(field.message);
  if (field.enum !== undefined) return typeLink(field.enum);
  return scalarName(field.fieldKind === "list" ? field.proto.type : (field.scalar ?? 0));
}

/** The names of `FieldDescriptorProto.Type`, by number: descriptor.proto. */
const SCALARS: Readonly<Record<number, string>> = {
  1: "double",
  2: "float",
  3: "int64",
  4: "uint64",
  5: "int32",
  8: "bool",
  9: "string",
  12: "bytes",
  13: "uint32",
};

function scalarName(type: number): string {
  const name = SCALARS[type];
  if (name === undefined) throw new Error(`proto/ uses a type that the reference does not know: ${type}`);
  return name;
}

/** Types of other packages, such as google.protobuf.Timestamp, have no section. */
function typeLink(type: DescMessage | DescEnum): string {
  if (type.file.proto.package !== "onceward.v1") return `\`${type.typeName}\``;
  return `[${nameOf(type)}](#${nameOf(type).toLowerCase().replaceAll(".", "")})`;
}
