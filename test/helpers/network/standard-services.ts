import { create, createFileRegistry, type DescService } from "@bufbuild/protobuf";
import {
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";

/** A field of a message, by number: its name, and its type, `[]` after it if it is repeated. */
type Fields = Readonly<Record<number, readonly [name: string, type: string]>>;

/** The parts of grpc/health/v1/health.proto that tests use. */
const HEALTH: Readonly<Record<string, Fields>> = {
  HealthCheckRequest: { 1: ["service", "string"] },
  // An enum on the wire: 1 is SERVING, 2 NOT_SERVING.
  HealthCheckResponse: { 1: ["status", "int32"] },
};

/** The parts of grpc/reflection/v1/reflection.proto that tests use; v1alpha has the same. */
const REFLECTION: Readonly<Record<string, Fields>> = {
  ServerReflectionRequest: {
    3: ["file_by_filename", "string"],
    4: ["file_containing_symbol", "string"],
    7: ["list_services", "string"],
  },
  ServerReflectionResponse: {
    4: ["file_descriptor_response", "FileDescriptorResponse"],
    6: ["list_services_response", "ListServiceResponse"],
  },
  FileDescriptorResponse: { 1: ["file_descriptor_proto", "bytes[]"] },
  ListServiceResponse: { 1: ["service", "ServiceResponse[]"] },
  ServiceResponse: { 1: ["name", "string"] },
};

/** grpc.health.v1.Health. */
export const Health = serviceOf("grpc.health.v1", "Health", HEALTH, [
  { name: "Check", inputType: "HealthCheckRequest", outputType: "HealthCheckResponse" },
  {
    name: "Watch",
    inputType: "HealthCheckRequest",
    outputType: "HealthCheckResponse",
    serverStreaming: true,
  },
]);

/** Returns a version of grpc.reflection. */
export function reflectionService(version: "v1" | "v1alpha"): DescService {
  const [inputType, outputType] = ["ServerReflectionRequest", "ServerReflectionResponse"];
  const both = { clientStreaming: true, serverStreaming: true };
  return serviceOf(`grpc.reflection.${version}`, "ServerReflection", REFLECTION, [
    { name: "ServerReflectionInfo", inputType, outputType, ...both },
  ]);
}

/** Returns a service that the files describe, in any order. */
export function describedService(files: readonly FileDescriptorProto[], name: string): DescService {
  const file = importedFirst(files);
  const service = createFileRegistry(create(FileDescriptorSetSchema, { file })).getService(name);
  if (service === undefined) throw new Error(`${name} is not described`);
  return service;
}

/** Sorts files so that each follows its imports, as a registry requires. */
function importedFirst(files: readonly FileDescriptorProto[]): FileDescriptorProto[] {
  const sorted = new Set<FileDescriptorProto>();
  const add = (file: FileDescriptorProto) => {
    for (const imported of files) if (file.dependency.includes(imported.name)) add(imported);
    sorted.add(file);
  };
  for (const file of files) add(file);
  return [...sorted];
}

interface MethodSpec {
  readonly name: string;
  readonly inputType: string;
  readonly outputType: string;
  readonly clientStreaming?: boolean;
  readonly serverStreaming?: boolean;
}

function serviceOf(
  package_: string,
  name: string,
  messages: Readonly<Record<string, Fields>>,
  methods: readonly MethodSpec[],
): DescService {
  const qualified = (type: string) => `.${package_}.${type}`;
  const file = create(FileDescriptorProtoSchema, {
    name: `${package_}.proto`,
    package: package_,
    syntax: "proto3",
    messageType: Object.entries(messages).map(([message, fields]) => ({
      name: message,
      field: Object.entries(fields).map(([number, [field, type]]) => ({
        name: field,
        number: Number(number),
        label: type.endsWith("[]") ? Label.REPEATED : Label.OPTIONAL,
        ...typeOf(type.replace("[]", ""), qualified),
      })),
    })),
    service: [
      {
        name,
        method: methods.map((method) => ({
          ...method,
          inputType: qualified(method.inputType),
          outputType: qualified(method.outputType),
        })),
      },
    ],
  });
  return describedService([file], `${package_}.${name}`);
}

function typeOf(type: string, qualified: (type: string) => string): { type: Type; typeName?: string } {
  switch (type) {
    case "string":
      return { type: Type.STRING };
    case "bytes":
      return { type: Type.BYTES };
    case "int32":
      return { type: Type.INT32 };
    default:
      return { type: Type.MESSAGE, typeName: qualified(type) };
  }
}
