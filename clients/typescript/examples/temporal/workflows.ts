import { proxyActivities } from "@temporalio/workflow";

/** The activities of the worker. */
interface Activities {
  charge(orderId: string): Promise<string>;
}

const { charge } = proxyActivities<Activities>({
  startToCloseTimeout: "10s",
  retry: { initialInterval: "100ms" },
});

/** Charges an order, and returns the charge's id. */
export async function chargeOrder(orderId: string): Promise<string> {
  return await charge(orderId);
}
