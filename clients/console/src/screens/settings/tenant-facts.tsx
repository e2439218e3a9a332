import type { Tenant } from "@onceward/gen/onceward/v1/tenant_pb.ts";
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
          <dt>Shortest key retention</dt>
          <dd>
            {bounds?.minKeyRetention ? <DurationText value={bounds.minKeyRetention} /> : CONTRACT.minKey}
          </dd>
          <dt>Longest key retention</dt>
          <dd>
            {bounds?.maxKeyRetention ? <DurationText value={bounds.maxKeyRetention} /> : CONTRACT.maxKey}
          </dd>
          <dt>Longest lease</dt>
          <dd>{bounds?.maxLease ? <DurationText value={bounds.maxLease} /> : CONTRACT.maxLease}</dd>
          <dt>Largest result</dt>
          <dd>
            {bounds?.maxResultBytes === undefined ? (
              CONTRACT.maxResult
            ) : (
              <Bytes value={bounds.maxResultBytes} />
            )}
          </dd>
        </dl>
      </section>
      <section>
        <h2>Quotas</h2>
        <dl>
          <dt>Operations</dt>
          <dd>
            <Limit value={quotas?.operationsPerSecond} unit="a second" />
          </dd>
          <dt>Calls at once, each replica</dt>
          <dd>
            <Limit value={quotas?.concurrentCalls} />
          </dd>
          <dt>Stored records</dt>
          <dd>
            <Limit value={quotas?.liveRecords} />
          </dd>
          <dt>Stored results</dt>
          <dd>{quotas?.storedBytes === undefined ? NO_LIMIT : <Bytes value={quotas.storedBytes} />}</dd>
          <dt>Declared namespaces</dt>
          <dd>
            <Quantity value={quotas?.declaredNamespaces ?? 1_000} />
          </dd>
        </dl>
        {quotas?.dryRun === true && <p>Calls beyond a quota are counted, and not refused.</p>}
      </section>
      <section>
        <h2>Tenant</h2>
        <dl>
          <dt>Name</dt>
          <dd>{tenant.name}</dd>
          <dt>Created</dt>
          <dd>
            <Time at={tenant.createdAt} />
          </dd>
        </dl>
      </section>
    </div>
  );
}

function Limit({ value, unit }: { readonly value: number | bigint | undefined; readonly unit?: string }) {
  if (value === undefined) return NO_LIMIT;
  return unit === undefined ? <Quantity value={value} /> : <Quantity value={value} unit={unit} />;
}
