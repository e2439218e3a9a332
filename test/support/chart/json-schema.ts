/** A JSON Schema, as far as the chart's uses it. */
export interface JsonSchema {
  readonly $schema?: string;
  readonly title?: string;
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: boolean | JsonSchema;
}

export const text: JsonSchema = { type: "string" };
export const flag: JsonSchema = { type: "boolean" };
/** A map of texts, such as labels. */
export const textMap: JsonSchema = { type: "object", additionalProperties: text };
/** A part of a Kubernetes object, which Kubernetes checks. */
export const part: JsonSchema = { type: "object" };
/** Parts of a Kubernetes object, which Kubernetes checks. */
export const parts: JsonSchema = { type: "array", items: part };

/** Returns the schema of a map with these members and no others. */
export function map(properties: Readonly<Record<string, JsonSchema>>): JsonSchema {
  return { type: "object", additionalProperties: false, properties };
}

/** Returns the schema of a whole number. */
export function whole(minimum: number, maximum?: number): JsonSchema {
  return { type: "integer", minimum, ...(maximum !== undefined && { maximum }) };
}

/** Returns the schema of a text that matches. */
export function matching(pattern: string): JsonSchema {
  return { type: "string", pattern };
}
