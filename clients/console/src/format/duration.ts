export * from "@onceward/words/durations";
export { parseDuration } from "@onceward/words/field-facts";
