import type { TestDatabase } from "../database/database.ts";
import { type ServerProcess, startServerProcess } from "../servers/server-process.ts";
import { useStarted } from "../use-started.ts";
import { type Collector, startCollector } from "./collector.ts";

/** Starts a collector and a server that sends its spans there soon, for the tests of the file. */
export function useTracedServer(
  database: TestDatabase,
  env: Readonly<Record<string, string>> = {},
): { readonly collector: Collector; readonly server: ServerProcess } {
  const collector = useStarted(startCollector, (started) => started.close());
  const sending = () => ({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: "20" });
  const server = useStarted(
    () => startServerProcess(database.url, { ...sending(), ...env }),
    (started) => started.end(),
  );
  return { collector, server };
}
