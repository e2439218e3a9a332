import { createClient } from "@connectrpc/connect";
import { createConnectQueryKey, useTransport } from "@connectrpc/connect-query";
import { OperatorService } from "@onceward/gen/onceward/v1/operator_pb.ts";
import {
  type ListAuditEventsResponse,
  TenantAdminService,
} from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useSession } from "../../session/session.ts";
import { type Filters, requestOf } from "./filters.ts";

type AuditPage = Pick<ListAuditEventsResponse, "events" | "nextPageToken">;

/** Which page of a list is asked for. Default of the size: the server's. */
type PageRequest = { readonly pageSize?: number; readonly pageToken: string };

/** Returns the function that reads a page of the events that match filters, newest first, by the service of the session's role. */
export function useListEvents() {
  const transport = useTransport();
  const { role } = useSession();
  return async (filters: Filters, page: PageRequest, signal: AbortSignal): Promise<AuditPage> => {
    const request = { ...requestOf(filters), ...page };
    if (role !== "OPERATOR") {
      return await createClient(TenantAdminService, transport).listAuditEvents(request, { signal });
    }
    const { tenant } = filters;
    return await createClient(OperatorService, transport).listAuditEvents({ ...request, tenant }, { signal });
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
