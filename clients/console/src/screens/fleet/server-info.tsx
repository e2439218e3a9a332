import type { GetServerInfoResponse } from "@onceward/gen/onceward/v1/operator_pb.ts";
import { CliHint } from "../../parts/cli-hint.tsx";
import { DataTable } from "../../parts/data-table.tsx";
import { Quantity } from "../../parts/quantity.tsx";

/** The replica that answered, and the configuration that it uses. */
export function ServerInfo({ info }: { readonly info: GetServerInfoResponse }) {
  const { version, replicaId, schemaVersion, replicas, config } = info;
  return (
    <section aria-labelledby="server">
      <h2 id="server">The replica that answers this page</h2>
      <dl>
        <dt>Replica</dt>
        <dd>
          <code>{replicaId}</code>
        </dd>
        <dt>Version</dt>
        <dd>{version}</dd>
        <dt>Newest migration</dt>
        <dd>{schemaVersion === "" ? "-" : schemaVersion}</dd>
        <dt>Live replicas</dt>
        <dd>
          <Quantity value={replicas} />
        </dd>
      </dl>
      <details>
        <summary>Its configuration</summary>
        <DataTable
          caption="Effective environment variables. Secrets are replaced."
          columns={[
            { heading: "Variable", cell: ([name]) => <code>{name}</code> },
            { heading: "Value", cell: ([, value]) => <code>{value}</code> },
          ]}
          rows={Object.entries(config).sort(([a], [b]) => (a < b ? -1 : 1))}
          rowKey={([name]) => name}
        />
      </details>
      <CliHint command="onceward operator info" />
    </section>
  );
}
