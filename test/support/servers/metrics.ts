import type { Addresses } from "../../../server/src/replica/server.ts";

/**
 * Returns the server's metrics by name and labels as in the exported text:
 * `onceward_batch_size_count{statement="x"}`.
 */
export async function readMetrics(server: Addresses): Promise<ReadonlyMap<string, number>> {
  const lines = (await readMetricsText(server))
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => {
      const space = line.lastIndexOf(" ");
      return [line.slice(0, space), Number(line.slice(space + 1))];
    }),
  );
}

/** Returns the exported text. */
export async function readMetricsText({ managementPort }: Addresses): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${managementPort}/metrics`);
  return await response.text();
}
