import { createClient } from "@connectrpc/connect";
import { createConnectQueryKey, useTransport } from "@connectrpc/connect-query";
import { OperatorService } from "@onceward/gen/onceward/v1/operator_pb.ts";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { AuditEvent } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useSession } from "../../session/session.ts";
import { type Filters, requestOf } from "./filters.ts";

/** A page of events, newest first. */
export interface AuditPage {
  readonly events: readonly AuditEvent[];
  readonly nextPageToken: string;
}

/** Which page of a list is asked for. */
export interface PageRequest {
  readonly pageSize: number;
  readonly pageToken: string;
}

/** Reads a page of the events that match filters. */
export type ListEvents = (filters: Filters, page: PageRequest, signal: AbortSignal) => Promise<AuditPage>;

/** Returns the function that lists events by the service of the session's role. */
export function useListEvents(): ListEvents {
  const transport = useTransport();
  const { role } = useSession();
  return (filters, page, signal) => {
    const request = { ...requestOf(filters), ...page };
    if (role !== "OPERATOR") {
      return createClient(TenantAdminService, transport).listAuditEvents(request, { signal });
    }
    const { tenant } = filters;
    return createClient(OperatorService, transport).listAuditEvents({ ...request, tenant }, { signal });
  };
}

/** Reads a page for the screen. Its key begins as those of the role's list: what reads that again reads this again. */
export function useAuditPage(filters: Filters, page: PageRequest) {
  const { role } = useSession();
  const listEvents = useListEvents();
  const cardinality = undefined;
  const key =
    role === "OPERATOR"
      ? createConnectQueryKey({ schema: OperatorService.method.listAuditEvents, cardinality })
      : createConnectQueryKey({ schema: TenantAdminService.method.listAuditEvents, cardinality });
  return useQuery({
    queryKey: [...key, filters, page],
    queryFn: ({ signal }) => listEvents(filters, page, signal),
    placeholderData: keepPreviousData,
  });
}
