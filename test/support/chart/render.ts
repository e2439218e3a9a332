import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { parseAllDocuments, stringify } from "yaml";
import { newDir } from "../new-dir.ts";
import { CHART } from "./values.ts";

const run = promisify(execFile);
const HELM_TIMEOUT_MS = 120_000;

/** A Kubernetes object, as far as tests read it. */
export interface KubernetesObject {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels: Labels };
  // biome-ignore lint/suspicious/noExplicitAny: each kind has its own, which kubeconform checks.
  readonly spec: any;
  /** Of a ConfigMap. */
  readonly data?: Readonly<Record<string, string>>;
}

export type Labels = Readonly<Record<string, string>>;

/** Renders the chart as release `rel` with a file of values. @throws what Helm prints. */
export async function renderText(helm: string, valuesFile: string): Promise<string> {
  const args = ["template", "rel", CHART, "--values", valuesFile];
  const { stdout } = await run(helm, args, { timeout: HELM_TIMEOUT_MS, maxBuffer: 2 ** 24 });
  return stdout;
}

/** Parses rendered text into objects. */
export function parseObjects(text: string): readonly KubernetesObject[] {
  return parseAllDocuments(text).flatMap((document) => (document.contents === null ? [] : [document.toJS()]));
}

/** Writes values into a file that is removed when the test ends; returns its path. */
export async function valuesFile(values: unknown): Promise<string> {
  const dir = await newDir();
  const file = join(dir, "values.yaml");
  await writeFile(file, stringify(values));
  return file;
}
