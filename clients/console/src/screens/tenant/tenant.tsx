import { useQuery } from "@connectrpc/connect-query";
import { OperatorService, type TenantUsage } from "@onceward/gen/onceward/v1/operator_pb.ts";
import { ApiKey_Role, type Tenant, Tenant_State } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { TENANT_CHANGES } from "@onceward/words/changes";
import { MEASURED, quotaName, quotaUse } from "@onceward/words/quota-use";
import { useState } from "react";
import { Link, useParams } from "wouter";
import { commandLine } from "../../format/command.ts";
import { asTitle, formatCount } from "../../format/quantity.ts";
import { CreateKeyDialog } from "../../parts/api-key/create-key-dialog.tsx";
import { type NewSecret, SecretPanel } from "../../parts/api-key/secret-panel.tsx";
import { DeletePart, DialogButton } from "../../parts/confirm-dialog.tsx";
import { CliHint } from "../../parts/copy-button.tsx";
import { Facts } from "../../parts/facts.tsx";
import { Empty, ErrorState, Loading } from "../../parts/list-states.tsx";
import { RefusedNowTable } from "../../parts/refused-now.tsx";
import { Time, useNow } from "../../parts/time.tsx";
import { readFailure } from "../../session/failure.ts";
import { Screen } from "../../shell/screen.tsx";
import common from "../../styles/common.module.css";
import { barOf, ofMinute, sumByBar } from "../home/hours.ts";
import { Outcomes } from "../home/outcomes.tsx";
import { LimitForm } from "./limit-form.tsx";
import { StateDialog, SuspendOrResume } from "./state-changes.tsx";
import { QuotaBar, Refused, TenantStateMark } from "./tenant-cells.tsx";
import { useCreateTenantKey, useTenantUsage } from "./use-tenant-usage.ts";

/** The screen of a tenant: its use, limits, first keys and state. */
export default function TenantScreen() {
  const { name = "" } = useParams();
  return (
    <Screen title={`Tenant ${name}`} parent={["/tenants", "All tenants"]}>
      <Content key={name} name={name} />
    </Screen>
  );
}

function Content({ name }: { readonly name: string }) {
  const { data, error, refetch } = useQuery(OperatorService.method.getTenant, { name });
  const usage = useTenantUsage(name);
  const createKey = useCreateTenantKey();
  const [secret, setSecret] = useState<NewSecret>();
  if (error !== null && readFailure(error).reason === "TENANT_NOT_FOUND") {
    return <Empty command="onceward operator tenants list">There is no tenant {name}.</Empty>;
  }
  const tenant = data?.tenant;
  if (tenant === undefined && error !== null) return <ErrorState error={error} retry={refetch} />;
  if (tenant === undefined || (usage.data === undefined && usage.error === null))
    return <Loading rows={16} />;
  const isDeleting = tenant.state === Tenant_State.DELETING;
  return (
    <>
      {usage.data !== undefined && usage.data.refused.length > 0 && (
        <RefusedNowTable refused={usage.data.refused} />
      )}
      {secret !== undefined && <SecretPanel secret={secret} hide={() => setSecret(undefined)} />}
      <TenantFacts tenant={tenant} />
      {!isDeleting && <SuspendOrResume tenant={tenant} />}
      <h2>Use</h2>
      {usage.error !== null && <ErrorState error={usage.error} retry={usage.refetch} />}
      {usage.data !== undefined && <Use usage={usage.data} />}
      {usage.data !== undefined && <LastHour usage={usage.data} />}
      {!isDeleting && (
        <>
          <LimitForm tenant={tenant} usage={usage.data} />
          <h2>API keys</h2>
          <p>
            The tenant's administrators create and revoke its keys. Its first one, or one for an administrator
            who lost all of them, comes from here.
          </p>
          <DialogButton
            action="Create a key of the tenant"
            dialog={(close) => (
              <CreateKeyDialog
                title={`Create a key of ${name}`}
                roles={[ApiKey_Role.TENANT_ADMIN, ApiKey_Role.CALLER]}
                create={(terms) => createKey(name, terms)}
                created={setSecret}
                close={close}
              />
            )}
          />
        </>
      )}
      <CliHint command={commandLine("onceward operator tenants show", {}, [name])} />
      {!isDeleting && (
        <DeletePart
          action="Delete the tenant"
          dialog={(close) => <StateDialog tenant={tenant} change="delete" close={close} />}
        >
          {TENANT_CHANGES.delete.effect} A suspended tenant keeps its records.
        </DeletePart>
      )}
    </>
  );
}

function TenantFacts({ tenant: { state, createdAt, name, movedTo } }: { readonly tenant: Tenant }) {
  return (
    <Facts
      of={{
        State: (
          <>
            <TenantStateMark state={state} /> {movedTo !== "" && `Its callers follow to ${movedTo}.`}
            {state === Tenant_State.DELETING && (
              <span className={common.quiet}> Its records are being removed; nothing can be changed.</span>
            )}
          </>
        ),
        Created: <Time at={createdAt} />,
        Changes: (
          <Link href={`/audit?${new URLSearchParams({ tenant: name })}`}>Audit events of the tenant</Link>
        ),
      }}
    />
  );
}

/** The claims of the last hour by minute, if there were any. */
function LastHour({ usage }: { readonly usage: TenantUsage }) {
  const bars = sumByBar(usage.minutes.map(ofMinute), barOf(useNow(), "1h"), "1h");
  if (bars.every(({ claims, refused }) => claims + refused === 0)) return undefined;
  return <Outcomes bars={bars} range="1h" />;
}

function Use({ usage }: { readonly usage: TenantUsage }) {
  const quotas = MEASURED.map((quota) => [
    `${asTitle(quotaName(quota))}${quota === "operationsPerSecond" ? " (claims, busiest of 15 minutes)" : ""}`,
    <QuotaBar key={quota} quota={quota} use={quotaUse(quota, usage, usage.quotas ?? {})} />,
  ]);
  return (
    <Facts
      of={{
        Refused: <Refused usage={usage} isDated />,
        ...Object.fromEntries(quotas),
        "Unfinished jobs": formatCount(usage.unfinishedRecordJobs),
      }}
    />
  );
}
