import type { Tenant } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { Fact } from "../../parts/fact.tsx";
import { Bytes, DurationText, Quantity } from "../../parts/quantity.tsx";
import { Time } from "../../parts/time.tsx";
import common from "../../styles/common.module.css";

const NO_LIMIT = "not limited";
/** The contract's limits, where the operator sets none (policy.proto). */
const CONTRACT = { minKey: "1 min", maxKey: "400 d", maxLease: "24 h", maxResult: "1 MiB" };

/** What the operator set for the tenant: it is shown, and only the operator can change it. */
export function TenantFacts({ tenant }: { readonly tenant: Tenant }) {
  const { policyBounds: bounds, quotas } = tenant;
  return (
    <div className={common.columns}>
      <section>
        <h2>Bounds of policies</h2>
        <dl>
          <Fact name="Shortest key retention">
            {bounds?.minKeyRetention ? <DurationText value={bounds.minKeyRetention} /> : CONTRACT.minKey}
          </Fact>
          <Fact name="Longest key retention">
            {bounds?.maxKeyRetention ? <DurationText value={bounds.maxKeyRetention} /> : CONTRACT.maxKey}
          </Fact>
          <Fact name="Longest lease">
            {bounds?.maxLease ? <DurationText value={bounds.maxLease} /> : CONTRACT.maxLease}
          </Fact>
          <Fact name="Largest result">
            {bounds?.maxResultBytes === undefined ? (
              CONTRACT.maxResult
            ) : (
              <Bytes value={bounds.maxResultBytes} />
            )}
          </Fact>
        </dl>
      </section>
      <section>
        <h2>Quotas</h2>
        <dl>
          <Fact name="Operations">
            <Limit value={quotas?.operationsPerSecond} unit="a second" />
          </Fact>
          <Fact name="Calls at once, each replica">
            <Limit value={quotas?.concurrentCalls} />
          </Fact>
          <Fact name="Stored records">
            <Limit value={quotas?.liveRecords} />
          </Fact>
          <Fact name="Stored results">
            {quotas?.storedBytes === undefined ? NO_LIMIT : <Bytes value={quotas.storedBytes} />}
          </Fact>
          <Fact name="Declared namespaces">
            <Quantity value={quotas?.declaredNamespaces ?? 1_000} />
          </Fact>
        </dl>
        {quotas?.dryRun === true && <p>Calls beyond a quota are counted, and not refused.</p>}
      </section>
      <section>
        <h2>Tenant</h2>
        <dl>
          <Fact name="Name">{tenant.name}</Fact>
          <Fact name="Created">
            <Time at={tenant.createdAt} />
          </Fact>
        </dl>
      </section>
    </div>
  );
}

function Limit({ value, unit }: { readonly value: number | bigint | undefined; readonly unit?: string }) {
  if (value === undefined) return NO_LIMIT;
  return unit === undefined ? <Quantity value={value} /> : <Quantity value={value} unit={unit} />;
}
