import type { GetServerInfoResponse } from "@onceward/gen/onceward/v1/operator_pb.ts";
import { CliHint } from "../../parts/cli-hint.tsx";
import { DataTable } from "../../parts/data-table.tsx";
import { Fact } from "../../parts/fact.tsx";
import { Quantity } from "../../parts/quantity.tsx";

/** The replica that answered, and the configuration that it uses. */
export function ServerInfo({ info }: { readonly info: GetServerInfoResponse }) {
  const { version, replicaId, schemaVersion, replicas, config } = info;
  return (
    <section aria-labelledby="server">
      <h2 id="server">The replica that answers this page</h2>
      <dl>
        <Fact name="Replica">
          <code>{replicaId}</code>
        </Fact>
        <Fact name="Version">{version}</Fact>
        <Fact name="Newest migration">{schemaVersion === "" ? "-" : schemaVersion}</Fact>
        <Fact name="Live replicas">
          <Quantity value={replicas} />
        </Fact>
      </dl>
      <details>
        <summary>Its configuration</summary>
        <DataTable
          caption="Effective environment variables. Secrets are replaced."
          columns={[
            ["Variable", ([name]) => <code>{name}</code>],
            ["Value", ([, value]) => <code>{value}</code>],
          ]}
          rows={Object.entries(config).sort(([a], [b]) => (a < b ? -1 : 1))}
          rowKey={([name]) => name}
        />
      </details>
      <CliHint command="onceward operator info" />
    </section>
  );
}
