import { SecretScreen } from "../../parts/api-key/secret-screen.tsx";
import { CreateTenant } from "./create-tenant.tsx";
import { TenantList } from "./tenant-list.tsx";

/** The screen "Tenants": the tenants with their use. */
export default function Tenants() {
  return (
    <SecretScreen
      title="Tenants"
      lead="Who uses the service, and how much of what is allowed."
      action="Create a tenant"
      form={CreateTenant}
    >
      {() => <TenantList />}
    </SecretScreen>
  );
}
