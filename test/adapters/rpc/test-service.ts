import { create, createFileRegistry, type Message } from "@bufbuild/protobuf";
import type { GenMessage, GenService } from "@bufbuild/protobuf/codegenv2";
import {
  type FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";

/** The request and response message of the test's service. */
export type Charge = Message<"test.v1.Charge"> & {
  requestId: string;
  id: string;
  labels: Record<string, string>;
};

const field = (name: string, number: number, type: FieldDescriptorProto_Type = Type.STRING) => {
  return { name, number, type, label: Label.OPTIONAL };
};

const file = create(FileDescriptorProtoSchema, {
  name: "test/v1/charges.proto",
  package: "test.v1",
  syntax: "proto3",
  messageType: [
    {
      name: "Charge",
      field: [
        field("request_id", 1),
        field("id", 2),
        {
          name: "labels",
          number: 3,
          type: Type.MESSAGE,
          typeName: ".test.v1.Charge.LabelsEntry",
          label: Label.REPEATED,
        },
      ],
      nestedType: [
        { name: "LabelsEntry", options: { mapEntry: true }, field: [field("key", 1), field("value", 2)] },
      ],
    },
  ],
  service: [
    {
      name: "Charges",
      method: [{ name: "Create", inputType: ".test.v1.Charge", outputType: ".test.v1.Charge" }],
    },
  ],
});

const registry = createFileRegistry(file, () => undefined);

export const ChargeSchema = registry.getMessage("test.v1.Charge") as GenMessage<Charge>;

export const Charges = registry.getService("test.v1.Charges") as GenService<{
  create: { methodKind: "unary"; input: typeof ChargeSchema; output: typeof ChargeSchema };
}>;
