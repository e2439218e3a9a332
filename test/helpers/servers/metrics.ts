import type { Addresses } from "../../../server/src/server.ts";

/**
 * Returns the server's metrics by name and labels as in the exported text:
 * `onceward_batch_size_count{statement="x"}`.
 */
export async function readMetrics({ managementPort }: Addresses): Promise<ReadonlyMap<string, number>> {
  const response = await fetch(`http://127.0.0.1:${managementPort}/metrics`);
  const lines = (await response.text()).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => {
      const space = line.lastIndexOf(" ");
      return [line.slice(0, space), Number(line.slice(space + 1))];
    }),
  );
}
