import { createClient } from "@connectrpc/connect";
import { createConnectQueryKey, useTransport } from "@connectrpc/connect-query";
import { OperatorService, type TenantUsage } from "@onceward/gen/onceward/v1/operator_pb.ts";
import { useQuery } from "@tanstack/react-query";

/** The server's largest page. */
const PAGE_SIZE = 200;
/** So many pages have 10,000 tenants, and take seconds. */
const MAX_PAGES = 50;

/** Reads the use of one tenant. The API lists the use of all, by name, so the pages before it are read, too. */
export function useTenantUsage(name: string) {
  const client = createClient(OperatorService, useTransport());
  const schema = OperatorService.method.listTenantUsage;
  return useQuery({
    // Begins as the key of the list, so that what reads the list again reads this one again.
    queryKey: [...createConnectQueryKey({ schema, cardinality: undefined }), name],
    queryFn: async ({ signal }): Promise<TenantUsage> => {
      let pageToken = "";
      for (let page = 0; page < MAX_PAGES; page += 1) {
        const answer = await client.listTenantUsage({ pageSize: PAGE_SIZE, pageToken }, { signal });
        const found = answer.tenants.find(({ tenant }) => tenant === name);
        if (found !== undefined) return found;
        pageToken = answer.nextPageToken;
        if (pageToken === "") break;
      }
      throw new Error(`The use of ${name} is not among the first ${PAGE_SIZE * MAX_PAGES} tenants.`);
    },
  });
}
